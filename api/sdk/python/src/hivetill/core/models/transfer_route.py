from typing import Literal

TransferRoute = Literal['manual', 'wallet', 'x402']

TRANSFER_ROUTE_VALUES: set[TransferRoute] = { 'manual', 'wallet', 'x402',  }

def check_transfer_route(value: str) -> TransferRoute:
    if value in TRANSFER_ROUTE_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {TRANSFER_ROUTE_VALUES!r}")
