from typing import Literal

PaymentRequiredAcceptsItemX402Version = Literal[1]

PAYMENT_REQUIRED_ACCEPTS_ITEM_X402_VERSION_VALUES: set[PaymentRequiredAcceptsItemX402Version] = { 1,  }

def check_payment_required_accepts_item_x402_version(value: int) -> PaymentRequiredAcceptsItemX402Version:
    if value in PAYMENT_REQUIRED_ACCEPTS_ITEM_X402_VERSION_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {PAYMENT_REQUIRED_ACCEPTS_ITEM_X402_VERSION_VALUES!r}")
