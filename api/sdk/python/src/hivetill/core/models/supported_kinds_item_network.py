from typing import Literal

SupportedKindsItemNetwork = Literal['hive:beeab0de000000000000000000000000', 'hive:mainnet']

SUPPORTED_KINDS_ITEM_NETWORK_VALUES: set[SupportedKindsItemNetwork] = { 'hive:beeab0de000000000000000000000000', 'hive:mainnet',  }

def check_supported_kinds_item_network(value: str) -> SupportedKindsItemNetwork:
    if value in SUPPORTED_KINDS_ITEM_NETWORK_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {SUPPORTED_KINDS_ITEM_NETWORK_VALUES!r}")
