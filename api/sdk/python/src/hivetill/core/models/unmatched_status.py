from typing import Literal

UnmatchedStatus = Literal['assigned', 'ignored', 'open']

UNMATCHED_STATUS_VALUES: set[UnmatchedStatus] = { 'assigned', 'ignored', 'open',  }

def check_unmatched_status(value: str) -> UnmatchedStatus:
    if value in UNMATCHED_STATUS_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {UNMATCHED_STATUS_VALUES!r}")
