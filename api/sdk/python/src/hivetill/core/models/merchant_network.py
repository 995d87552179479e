from typing import Literal

MerchantNetwork = Literal['development', 'mainnet', 'testnet']

MERCHANT_NETWORK_VALUES: set[MerchantNetwork] = { 'development', 'mainnet', 'testnet',  }

def check_merchant_network(value: str) -> MerchantNetwork:
    if value in MERCHANT_NETWORK_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {MERCHANT_NETWORK_VALUES!r}")
