from typing import Literal

SettledNetwork = Literal['hive:mainnet']

SETTLED_NETWORK_VALUES: set[SettledNetwork] = { 'hive:mainnet',  }

def check_settled_network(value: str) -> SettledNetwork:
    if value in SETTLED_NETWORK_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {SETTLED_NETWORK_VALUES!r}")
