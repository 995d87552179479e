from typing import Literal

PaymentResolutionType0Kind = Literal['accepted', 'ignored', 'refunded']

PAYMENT_RESOLUTION_TYPE_0_KIND_VALUES: set[PaymentResolutionType0Kind] = { 'accepted', 'ignored', 'refunded',  }

def check_payment_resolution_type_0_kind(value: str) -> PaymentResolutionType0Kind:
    if value in PAYMENT_RESOLUTION_TYPE_0_KIND_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {PAYMENT_RESOLUTION_TYPE_0_KIND_VALUES!r}")
