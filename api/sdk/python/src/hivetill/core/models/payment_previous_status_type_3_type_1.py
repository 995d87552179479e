from typing import Literal

PaymentPreviousStatusType3Type1 = Literal['completed', 'failed', 'pending', 'processing', 'system_cancelled', 'user_cancelled']

PAYMENT_PREVIOUS_STATUS_TYPE_3_TYPE_1_VALUES: set[PaymentPreviousStatusType3Type1] = { 'completed', 'failed', 'pending', 'processing', 'system_cancelled', 'user_cancelled',  }

def check_payment_previous_status_type_3_type_1(value: str) -> PaymentPreviousStatusType3Type1:
    if value in PAYMENT_PREVIOUS_STATUS_TYPE_3_TYPE_1_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {PAYMENT_PREVIOUS_STATUS_TYPE_3_TYPE_1_VALUES!r}")
