from typing import Literal

PaymentEventDataStatus = Literal['completed', 'failed', 'pending', 'processing', 'system_cancelled', 'user_cancelled']

PAYMENT_EVENT_DATA_STATUS_VALUES: set[PaymentEventDataStatus] = { 'completed', 'failed', 'pending', 'processing', 'system_cancelled', 'user_cancelled',  }

def check_payment_event_data_status(value: str) -> PaymentEventDataStatus:
    if value in PAYMENT_EVENT_DATA_STATUS_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {PAYMENT_EVENT_DATA_STATUS_VALUES!r}")
