from typing import Literal

DeliveryWithAttemptsStatus = Literal['delivered', 'failed', 'held', 'pending']

DELIVERY_WITH_ATTEMPTS_STATUS_VALUES: set[DeliveryWithAttemptsStatus] = { 'delivered', 'failed', 'held', 'pending',  }

def check_delivery_with_attempts_status(value: str) -> DeliveryWithAttemptsStatus:
    if value in DELIVERY_WITH_ATTEMPTS_STATUS_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {DELIVERY_WITH_ATTEMPTS_STATUS_VALUES!r}")
