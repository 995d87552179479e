from typing import Literal

UnmatchedEventDataReason = Literal['ambiguous_memo', 'encrypted_memo', 'no_session', 'other_account', 'unknown_session', 'unsupported_operation']

UNMATCHED_EVENT_DATA_REASON_VALUES: set[UnmatchedEventDataReason] = { 'ambiguous_memo', 'encrypted_memo', 'no_session', 'other_account', 'unknown_session', 'unsupported_operation',  }

def check_unmatched_event_data_reason(value: str) -> UnmatchedEventDataReason:
    if value in UNMATCHED_EVENT_DATA_REASON_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {UNMATCHED_EVENT_DATA_REASON_VALUES!r}")
