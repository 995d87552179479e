from typing import Literal

UpdateMerchantWebhookEventsItem = Literal['merchant.account_change', 'payment.exception', 'payment.status_changed', 'refund.completed', 'transfer.unmatched', 'x402.settled']

UPDATE_MERCHANT_WEBHOOK_EVENTS_ITEM_VALUES: set[UpdateMerchantWebhookEventsItem] = { 'merchant.account_change', 'payment.exception', 'payment.status_changed', 'refund.completed', 'transfer.unmatched', 'x402.settled',  }

def check_update_merchant_webhook_events_item(value: str) -> UpdateMerchantWebhookEventsItem:
    if value in UPDATE_MERCHANT_WEBHOOK_EVENTS_ITEM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {UPDATE_MERCHANT_WEBHOOK_EVENTS_ITEM_VALUES!r}")
