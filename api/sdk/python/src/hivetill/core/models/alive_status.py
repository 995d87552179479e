from typing import Literal

AliveStatus = Literal['ok']

ALIVE_STATUS_VALUES: set[AliveStatus] = { 'ok',  }

def check_alive_status(value: str) -> AliveStatus:
    if value in ALIVE_STATUS_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {ALIVE_STATUS_VALUES!r}")
