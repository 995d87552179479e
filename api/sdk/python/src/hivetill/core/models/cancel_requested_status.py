from typing import Literal

CancelRequestedStatus = Literal['completed', 'failed', 'pending', 'processing', 'system_cancelled', 'user_cancelled']

CANCEL_REQUESTED_STATUS_VALUES: set[CancelRequestedStatus] = { 'completed', 'failed', 'pending', 'processing', 'system_cancelled', 'user_cancelled',  }

def check_cancel_requested_status(value: str) -> CancelRequestedStatus:
    if value in CANCEL_REQUESTED_STATUS_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {CANCEL_REQUESTED_STATUS_VALUES!r}")
