from typing import Literal

PaymentCancelledByType2Type1 = Literal['customer', 'merchant']

PAYMENT_CANCELLED_BY_TYPE_2_TYPE_1_VALUES: set[PaymentCancelledByType2Type1] = { 'customer', 'merchant',  }

def check_payment_cancelled_by_type_2_type_1(value: str) -> PaymentCancelledByType2Type1:
    if value in PAYMENT_CANCELLED_BY_TYPE_2_TYPE_1_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {PAYMENT_CANCELLED_BY_TYPE_2_TYPE_1_VALUES!r}")
