from typing import Literal

PaymentsListCurrency = Literal['HBD', 'HIVE']

PAYMENTS_LIST_CURRENCY_VALUES: set[PaymentsListCurrency] = { 'HBD', 'HIVE',  }

def check_payments_list_currency(value: str) -> PaymentsListCurrency:
    if value in PAYMENTS_LIST_CURRENCY_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {PAYMENTS_LIST_CURRENCY_VALUES!r}")
