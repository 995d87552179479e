from typing import Literal

PaymentCancelledByType3Type1 = Literal['customer', 'merchant']

PAYMENT_CANCELLED_BY_TYPE_3_TYPE_1_VALUES: set[PaymentCancelledByType3Type1] = { 'customer', 'merchant',  }

def check_payment_cancelled_by_type_3_type_1(value: str) -> PaymentCancelledByType3Type1:
    if value in PAYMENT_CANCELLED_BY_TYPE_3_TYPE_1_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {PAYMENT_CANCELLED_BY_TYPE_3_TYPE_1_VALUES!r}")
