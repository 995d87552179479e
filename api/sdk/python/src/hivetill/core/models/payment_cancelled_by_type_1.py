from typing import Literal

PaymentCancelledByType1 = Literal['customer', 'merchant']

PAYMENT_CANCELLED_BY_TYPE_1_VALUES: set[PaymentCancelledByType1] = { 'customer', 'merchant',  }

def check_payment_cancelled_by_type_1(value: str) -> PaymentCancelledByType1:
    if value in PAYMENT_CANCELLED_BY_TYPE_1_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {PAYMENT_CANCELLED_BY_TYPE_1_VALUES!r}")
