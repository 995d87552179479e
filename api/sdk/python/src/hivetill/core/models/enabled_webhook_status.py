from typing import Literal

EnabledWebhookStatus = Literal['active', 'disabled', 'failing', 'none']

ENABLED_WEBHOOK_STATUS_VALUES: set[EnabledWebhookStatus] = { 'active', 'disabled', 'failing', 'none',  }

def check_enabled_webhook_status(value: str) -> EnabledWebhookStatus:
    if value in ENABLED_WEBHOOK_STATUS_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {ENABLED_WEBHOOK_STATUS_VALUES!r}")
