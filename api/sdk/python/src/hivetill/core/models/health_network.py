from typing import Literal

HealthNetwork = Literal['development', 'mainnet', 'testnet']

HEALTH_NETWORK_VALUES: set[HealthNetwork] = { 'development', 'mainnet', 'testnet',  }

def check_health_network(value: str) -> HealthNetwork:
    if value in HEALTH_NETWORK_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {HEALTH_NETWORK_VALUES!r}")
