from typing import Literal

PaymentRequiredX402Version = Literal[1]

PAYMENT_REQUIRED_X402_VERSION_VALUES: set[PaymentRequiredX402Version] = { 1,  }

def check_payment_required_x402_version(value: int) -> PaymentRequiredX402Version:
    if value in PAYMENT_REQUIRED_X402_VERSION_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {PAYMENT_REQUIRED_X402_VERSION_VALUES!r}")
