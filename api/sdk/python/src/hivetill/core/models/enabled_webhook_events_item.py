from typing import Literal

EnabledWebhookEventsItem = Literal['merchant.account_change', 'payment.exception', 'payment.status_changed', 'refund.completed', 'transfer.unmatched', 'x402.settled']

ENABLED_WEBHOOK_EVENTS_ITEM_VALUES: set[EnabledWebhookEventsItem] = { 'merchant.account_change', 'payment.exception', 'payment.status_changed', 'refund.completed', 'transfer.unmatched', 'x402.settled',  }

def check_enabled_webhook_events_item(value: str) -> EnabledWebhookEventsItem:
    if value in ENABLED_WEBHOOK_EVENTS_ITEM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {ENABLED_WEBHOOK_EVENTS_ITEM_VALUES!r}")
