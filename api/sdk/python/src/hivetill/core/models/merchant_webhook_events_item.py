from typing import Literal

MerchantWebhookEventsItem = Literal['merchant.account_change', 'payment.exception', 'payment.status_changed', 'refund.completed', 'transfer.unmatched', 'x402.settled']

MERCHANT_WEBHOOK_EVENTS_ITEM_VALUES: set[MerchantWebhookEventsItem] = { 'merchant.account_change', 'payment.exception', 'payment.status_changed', 'refund.completed', 'transfer.unmatched', 'x402.settled',  }

def check_merchant_webhook_events_item(value: str) -> MerchantWebhookEventsItem:
    if value in MERCHANT_WEBHOOK_EVENTS_ITEM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {MERCHANT_WEBHOOK_EVENTS_ITEM_VALUES!r}")
