from typing import Literal

PaymentsListAliasCurrency = Literal['HBD', 'HIVE']

PAYMENTS_LIST_ALIAS_CURRENCY_VALUES: set[PaymentsListAliasCurrency] = { 'HBD', 'HIVE',  }

def check_payments_list_alias_currency(value: str) -> PaymentsListAliasCurrency:
    if value in PAYMENTS_LIST_ALIAS_CURRENCY_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {PAYMENTS_LIST_ALIAS_CURRENCY_VALUES!r}")
