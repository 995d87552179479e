from typing import Literal

PaymentsExportCurrency = Literal['HBD', 'HIVE']

PAYMENTS_EXPORT_CURRENCY_VALUES: set[PaymentsExportCurrency] = { 'HBD', 'HIVE',  }

def check_payments_export_currency(value: str) -> PaymentsExportCurrency:
    if value in PAYMENTS_EXPORT_CURRENCY_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {PAYMENTS_EXPORT_CURRENCY_VALUES!r}")
