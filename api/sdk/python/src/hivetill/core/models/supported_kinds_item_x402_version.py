from typing import Literal

SupportedKindsItemX402Version = Literal[1, 2]

SUPPORTED_KINDS_ITEM_X402_VERSION_VALUES: set[SupportedKindsItemX402Version] = { 1, 2,  }

def check_supported_kinds_item_x402_version(value: int) -> SupportedKindsItemX402Version:
    if value in SUPPORTED_KINDS_ITEM_X402_VERSION_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {SUPPORTED_KINDS_ITEM_X402_VERSION_VALUES!r}")
