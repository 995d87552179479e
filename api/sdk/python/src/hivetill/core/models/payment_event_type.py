from typing import Literal

PaymentEventType = Literal['payment.exception', 'payment.status_changed', 'refund.completed']

PAYMENT_EVENT_TYPE_VALUES: set[PaymentEventType] = { 'payment.exception', 'payment.status_changed', 'refund.completed',  }

def check_payment_event_type(value: str) -> PaymentEventType:
    if value in PAYMENT_EVENT_TYPE_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {PAYMENT_EVENT_TYPE_VALUES!r}")
