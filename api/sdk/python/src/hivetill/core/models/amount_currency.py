from typing import Literal

AmountCurrency = Literal['HBD', 'HIVE']

AMOUNT_CURRENCY_VALUES: set[AmountCurrency] = { 'HBD', 'HIVE',  }

def check_amount_currency(value: str) -> AmountCurrency:
    if value in AMOUNT_CURRENCY_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {AMOUNT_CURRENCY_VALUES!r}")
