from typing import Literal

UpdateWebhookEndpointEventsItem = Literal['merchant.account_change', 'payment.exception', 'payment.status_changed', 'refund.completed', 'transfer.unmatched', 'x402.settled']

UPDATE_WEBHOOK_ENDPOINT_EVENTS_ITEM_VALUES: set[UpdateWebhookEndpointEventsItem] = { 'merchant.account_change', 'payment.exception', 'payment.status_changed', 'refund.completed', 'transfer.unmatched', 'x402.settled',  }

def check_update_webhook_endpoint_events_item(value: str) -> UpdateWebhookEndpointEventsItem:
    if value in UPDATE_WEBHOOK_ENDPOINT_EVENTS_ITEM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {UPDATE_WEBHOOK_ENDPOINT_EVENTS_ITEM_VALUES!r}")
