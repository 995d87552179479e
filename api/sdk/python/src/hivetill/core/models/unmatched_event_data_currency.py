from typing import Literal

UnmatchedEventDataCurrency = Literal['HBD', 'HIVE']

UNMATCHED_EVENT_DATA_CURRENCY_VALUES: set[UnmatchedEventDataCurrency] = { 'HBD', 'HIVE',  }

def check_unmatched_event_data_currency(value: str) -> UnmatchedEventDataCurrency:
    if value in UNMATCHED_EVENT_DATA_CURRENCY_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {UNMATCHED_EVENT_DATA_CURRENCY_VALUES!r}")
