from typing import Literal

SaleEventDataCurrency = Literal['HBD', 'HIVE']

SALE_EVENT_DATA_CURRENCY_VALUES: set[SaleEventDataCurrency] = { 'HBD', 'HIVE',  }

def check_sale_event_data_currency(value: str) -> SaleEventDataCurrency:
    if value in SALE_EVENT_DATA_CURRENCY_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {SALE_EVENT_DATA_CURRENCY_VALUES!r}")
