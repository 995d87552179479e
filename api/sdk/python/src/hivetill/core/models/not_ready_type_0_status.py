from typing import Literal

NotReadyType0Status = Literal['degraded', 'unavailable']

NOT_READY_TYPE_0_STATUS_VALUES: set[NotReadyType0Status] = { 'degraded', 'unavailable',  }

def check_not_ready_type_0_status(value: str) -> NotReadyType0Status:
    if value in NOT_READY_TYPE_0_STATUS_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {NOT_READY_TYPE_0_STATUS_VALUES!r}")
