from typing import Literal

UnmatchedEventType = Literal['transfer.unmatched']

UNMATCHED_EVENT_TYPE_VALUES: set[UnmatchedEventType] = { 'transfer.unmatched',  }

def check_unmatched_event_type(value: str) -> UnmatchedEventType:
    if value in UNMATCHED_EVENT_TYPE_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {UNMATCHED_EVENT_TYPE_VALUES!r}")
