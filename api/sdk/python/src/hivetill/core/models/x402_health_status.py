from typing import Literal

X402HealthStatus = Literal['ok']

X402_HEALTH_STATUS_VALUES: set[X402HealthStatus] = { 'ok',  }

def check_x402_health_status(value: str) -> X402HealthStatus:
    if value in X402_HEALTH_STATUS_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {X402_HEALTH_STATUS_VALUES!r}")
