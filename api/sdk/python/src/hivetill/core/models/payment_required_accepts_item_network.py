from typing import Literal

PaymentRequiredAcceptsItemNetwork = Literal['hive:mainnet']

PAYMENT_REQUIRED_ACCEPTS_ITEM_NETWORK_VALUES: set[PaymentRequiredAcceptsItemNetwork] = { 'hive:mainnet',  }

def check_payment_required_accepts_item_network(value: str) -> PaymentRequiredAcceptsItemNetwork:
    if value in PAYMENT_REQUIRED_ACCEPTS_ITEM_NETWORK_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {PAYMENT_REQUIRED_ACCEPTS_ITEM_NETWORK_VALUES!r}")
