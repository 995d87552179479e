from typing import Literal

PaymentStatusReasonType2Type1 = Literal['cancelled_by_customer', 'cancelled_by_merchant', 'expired', 'paid', 'settlement_pending', 'transaction_expired']

PAYMENT_STATUS_REASON_TYPE_2_TYPE_1_VALUES: set[PaymentStatusReasonType2Type1] = { 'cancelled_by_customer', 'cancelled_by_merchant', 'expired', 'paid', 'settlement_pending', 'transaction_expired',  }

def check_payment_status_reason_type_2_type_1(value: str) -> PaymentStatusReasonType2Type1:
    if value in PAYMENT_STATUS_REASON_TYPE_2_TYPE_1_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {PAYMENT_STATUS_REASON_TYPE_2_TYPE_1_VALUES!r}")
