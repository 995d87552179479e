from typing import Literal

WebhookEndpointEventsItem = Literal['merchant.account_change', 'payment.exception', 'payment.status_changed', 'refund.completed', 'transfer.unmatched', 'x402.settled']

WEBHOOK_ENDPOINT_EVENTS_ITEM_VALUES: set[WebhookEndpointEventsItem] = { 'merchant.account_change', 'payment.exception', 'payment.status_changed', 'refund.completed', 'transfer.unmatched', 'x402.settled',  }

def check_webhook_endpoint_events_item(value: str) -> WebhookEndpointEventsItem:
    if value in WEBHOOK_ENDPOINT_EVENTS_ITEM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {WEBHOOK_ENDPOINT_EVENTS_ITEM_VALUES!r}")
