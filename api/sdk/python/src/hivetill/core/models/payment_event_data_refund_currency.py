from typing import Literal

PaymentEventDataRefundCurrency = Literal['HBD', 'HIVE']

PAYMENT_EVENT_DATA_REFUND_CURRENCY_VALUES: set[PaymentEventDataRefundCurrency] = { 'HBD', 'HIVE',  }

def check_payment_event_data_refund_currency(value: str) -> PaymentEventDataRefundCurrency:
    if value in PAYMENT_EVENT_DATA_REFUND_CURRENCY_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {PAYMENT_EVENT_DATA_REFUND_CURRENCY_VALUES!r}")
