from typing import Literal

PaymentExceptionsItem = Literal['manual', 'overpaid', 'paid_after_cancel', 'paid_after_failure', 'paid_again', 'paid_late', 'self_transfer', 'settlement_reversed', 'underpaid', 'wrong_currency']

PAYMENT_EXCEPTIONS_ITEM_VALUES: set[PaymentExceptionsItem] = { 'manual', 'overpaid', 'paid_after_cancel', 'paid_after_failure', 'paid_again', 'paid_late', 'self_transfer', 'settlement_reversed', 'underpaid', 'wrong_currency',  }

def check_payment_exceptions_item(value: str) -> PaymentExceptionsItem:
    if value in PAYMENT_EXCEPTIONS_ITEM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {PAYMENT_EXCEPTIONS_ITEM_VALUES!r}")
