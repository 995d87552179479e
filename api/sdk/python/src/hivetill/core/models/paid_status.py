from typing import Literal

PaidStatus = Literal['completed']

PAID_STATUS_VALUES: set[PaidStatus] = { 'completed',  }

def check_paid_status(value: str) -> PaidStatus:
    if value in PAID_STATUS_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {PAID_STATUS_VALUES!r}")
