from typing import Literal

PaymentEventDataNewExceptionsItem = Literal['manual', 'overpaid', 'paid_after_cancel', 'paid_after_failure', 'paid_again', 'paid_late', 'self_transfer', 'settlement_reversed', 'underpaid', 'wrong_currency']

PAYMENT_EVENT_DATA_NEW_EXCEPTIONS_ITEM_VALUES: set[PaymentEventDataNewExceptionsItem] = { 'manual', 'overpaid', 'paid_after_cancel', 'paid_after_failure', 'paid_again', 'paid_late', 'self_transfer', 'settlement_reversed', 'underpaid', 'wrong_currency',  }

def check_payment_event_data_new_exceptions_item(value: str) -> PaymentEventDataNewExceptionsItem:
    if value in PAYMENT_EVENT_DATA_NEW_EXCEPTIONS_ITEM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {PAYMENT_EVENT_DATA_NEW_EXCEPTIONS_ITEM_VALUES!r}")
