from typing import Literal

CreatedStatus = Literal['completed', 'failed', 'pending', 'processing', 'system_cancelled', 'user_cancelled']

CREATED_STATUS_VALUES: set[CreatedStatus] = { 'completed', 'failed', 'pending', 'processing', 'system_cancelled', 'user_cancelled',  }

def check_created_status(value: str) -> CreatedStatus:
    if value in CREATED_STATUS_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {CREATED_STATUS_VALUES!r}")
