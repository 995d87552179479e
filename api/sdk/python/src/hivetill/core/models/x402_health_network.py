from typing import Literal

X402HealthNetwork = Literal['hive:mainnet']

X402_HEALTH_NETWORK_VALUES: set[X402HealthNetwork] = { 'hive:mainnet',  }

def check_x402_health_network(value: str) -> X402HealthNetwork:
    if value in X402_HEALTH_NETWORK_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {X402_HEALTH_NETWORK_VALUES!r}")
