from typing import Literal

SumCurrency = Literal['HBD', 'HIVE']

SUM_CURRENCY_VALUES: set[SumCurrency] = { 'HBD', 'HIVE',  }

def check_sum_currency(value: str) -> SumCurrency:
    if value in SUM_CURRENCY_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {SUM_CURRENCY_VALUES!r}")
