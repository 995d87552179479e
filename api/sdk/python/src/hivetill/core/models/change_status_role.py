from typing import Literal

ChangeStatusRole = Literal['nonActive', 'user']

CHANGE_STATUS_ROLE_VALUES: set[ChangeStatusRole] = { 'nonActive', 'user',  }

def check_change_status_role(value: str) -> ChangeStatusRole:
    if value in CHANGE_STATUS_ROLE_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {CHANGE_STATUS_ROLE_VALUES!r}")
