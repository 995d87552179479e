from typing import Literal

PaymentStatus = Literal['completed', 'failed', 'pending', 'processing', 'system_cancelled', 'user_cancelled']

PAYMENT_STATUS_VALUES: set[PaymentStatus] = { 'completed', 'failed', 'pending', 'processing', 'system_cancelled', 'user_cancelled',  }

def check_payment_status(value: str) -> PaymentStatus:
    if value in PAYMENT_STATUS_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {PAYMENT_STATUS_VALUES!r}")
