from typing import Literal

PaymentEventDataPreviousStatus = Literal['completed', 'failed', 'pending', 'processing', 'system_cancelled', 'user_cancelled']

PAYMENT_EVENT_DATA_PREVIOUS_STATUS_VALUES: set[PaymentEventDataPreviousStatus] = { 'completed', 'failed', 'pending', 'processing', 'system_cancelled', 'user_cancelled',  }

def check_payment_event_data_previous_status(value: str) -> PaymentEventDataPreviousStatus:
    if value in PAYMENT_EVENT_DATA_PREVIOUS_STATUS_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {PAYMENT_EVENT_DATA_PREVIOUS_STATUS_VALUES!r}")
