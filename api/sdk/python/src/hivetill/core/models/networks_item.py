from typing import Literal

NetworksItem = Literal['hive:mainnet']

NETWORKS_ITEM_VALUES: set[NetworksItem] = { 'hive:mainnet',  }

def check_networks_item(value: str) -> NetworksItem:
    if value in NETWORKS_ITEM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {NETWORKS_ITEM_VALUES!r}")
