from typing import Literal

PaymentsPrepareRefundCurrency = Literal['HBD', 'HIVE']

PAYMENTS_PREPARE_REFUND_CURRENCY_VALUES: set[PaymentsPrepareRefundCurrency] = { 'HBD', 'HIVE',  }

def check_payments_prepare_refund_currency(value: str) -> PaymentsPrepareRefundCurrency:
    if value in PAYMENTS_PREPARE_REFUND_CURRENCY_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {PAYMENTS_PREPARE_REFUND_CURRENCY_VALUES!r}")
