from typing import Literal

WebhookDeliveriesExportFormat = Literal['csv', 'json']

WEBHOOK_DELIVERIES_EXPORT_FORMAT_VALUES: set[WebhookDeliveriesExportFormat] = { 'csv', 'json',  }

def check_webhook_deliveries_export_format(value: str) -> WebhookDeliveriesExportFormat:
    if value in WEBHOOK_DELIVERIES_EXPORT_FORMAT_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {WEBHOOK_DELIVERIES_EXPORT_FORMAT_VALUES!r}")
