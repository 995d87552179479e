from typing import Literal

AccountEventType = Literal['merchant.account_change']

ACCOUNT_EVENT_TYPE_VALUES: set[AccountEventType] = { 'merchant.account_change',  }

def check_account_event_type(value: str) -> AccountEventType:
    if value in ACCOUNT_EVENT_TYPE_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {ACCOUNT_EVENT_TYPE_VALUES!r}")
