from typing import Literal

AccountEventDataChange = Literal['cancelled', 'completed', 'requested']

ACCOUNT_EVENT_DATA_CHANGE_VALUES: set[AccountEventDataChange] = { 'cancelled', 'completed', 'requested',  }

def check_account_event_data_change(value: str) -> AccountEventDataChange:
    if value in ACCOUNT_EVENT_DATA_CHANGE_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {ACCOUNT_EVENT_DATA_CHANGE_VALUES!r}")
