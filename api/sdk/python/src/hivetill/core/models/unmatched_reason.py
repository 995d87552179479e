from typing import Literal

UnmatchedReason = Literal['ambiguous_memo', 'encrypted_memo', 'no_session', 'other_account', 'unknown_session', 'unsupported_operation']

UNMATCHED_REASON_VALUES: set[UnmatchedReason] = { 'ambiguous_memo', 'encrypted_memo', 'no_session', 'other_account', 'unknown_session', 'unsupported_operation',  }

def check_unmatched_reason(value: str) -> UnmatchedReason:
    if value in UNMATCHED_REASON_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {UNMATCHED_REASON_VALUES!r}")
