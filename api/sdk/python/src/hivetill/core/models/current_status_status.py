from typing import Literal

CurrentStatusStatus = Literal['completed', 'failed', 'pending', 'processing', 'system_cancelled', 'user_cancelled']

CURRENT_STATUS_STATUS_VALUES: set[CurrentStatusStatus] = { 'completed', 'failed', 'pending', 'processing', 'system_cancelled', 'user_cancelled',  }

def check_current_status_status(value: str) -> CurrentStatusStatus:
    if value in CURRENT_STATUS_STATUS_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {CURRENT_STATUS_STATUS_VALUES!r}")
