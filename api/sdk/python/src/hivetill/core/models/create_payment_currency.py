from typing import Literal

CreatePaymentCurrency = Literal['HBD', 'HIVE']

CREATE_PAYMENT_CURRENCY_VALUES: set[CreatePaymentCurrency] = { 'HBD', 'HIVE',  }

def check_create_payment_currency(value: str) -> CreatePaymentCurrency:
    if value in CREATE_PAYMENT_CURRENCY_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {CREATE_PAYMENT_CURRENCY_VALUES!r}")
