from typing import Literal

PaymentEventDataExceptionsItem = Literal['manual', 'overpaid', 'paid_after_cancel', 'paid_after_failure', 'paid_again', 'paid_late', 'self_transfer', 'settlement_reversed', 'underpaid', 'wrong_currency']

PAYMENT_EVENT_DATA_EXCEPTIONS_ITEM_VALUES: set[PaymentEventDataExceptionsItem] = { 'manual', 'overpaid', 'paid_after_cancel', 'paid_after_failure', 'paid_again', 'paid_late', 'self_transfer', 'settlement_reversed', 'underpaid', 'wrong_currency',  }

def check_payment_event_data_exceptions_item(value: str) -> PaymentEventDataExceptionsItem:
    if value in PAYMENT_EVENT_DATA_EXCEPTIONS_ITEM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {PAYMENT_EVENT_DATA_EXCEPTIONS_ITEM_VALUES!r}")
