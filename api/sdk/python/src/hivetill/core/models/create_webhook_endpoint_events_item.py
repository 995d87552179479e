from typing import Literal

CreateWebhookEndpointEventsItem = Literal['merchant.account_change', 'payment.exception', 'payment.status_changed', 'refund.completed', 'transfer.unmatched', 'x402.settled']

CREATE_WEBHOOK_ENDPOINT_EVENTS_ITEM_VALUES: set[CreateWebhookEndpointEventsItem] = { 'merchant.account_change', 'payment.exception', 'payment.status_changed', 'refund.completed', 'transfer.unmatched', 'x402.settled',  }

def check_create_webhook_endpoint_events_item(value: str) -> CreateWebhookEndpointEventsItem:
    if value in CREATE_WEBHOOK_ENDPOINT_EVENTS_ITEM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {CREATE_WEBHOOK_ENDPOINT_EVENTS_ITEM_VALUES!r}")
