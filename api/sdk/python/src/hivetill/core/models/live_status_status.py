from typing import Literal

LiveStatusStatus = Literal['completed', 'failed', 'pending', 'processing', 'system_cancelled', 'user_cancelled']

LIVE_STATUS_STATUS_VALUES: set[LiveStatusStatus] = { 'completed', 'failed', 'pending', 'processing', 'system_cancelled', 'user_cancelled',  }

def check_live_status_status(value: str) -> LiveStatusStatus:
    if value in LIVE_STATUS_STATUS_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {LIVE_STATUS_STATUS_VALUES!r}")
