from typing import Literal

CreatedCurrency = Literal['HBD', 'HIVE']

CREATED_CURRENCY_VALUES: set[CreatedCurrency] = { 'HBD', 'HIVE',  }

def check_created_currency(value: str) -> CreatedCurrency:
    if value in CREATED_CURRENCY_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {CREATED_CURRENCY_VALUES!r}")
