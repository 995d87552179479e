from typing import Literal

PaymentsExportFormat = Literal['csv', 'json']

PAYMENTS_EXPORT_FORMAT_VALUES: set[PaymentsExportFormat] = { 'csv', 'json',  }

def check_payments_export_format(value: str) -> PaymentsExportFormat:
    if value in PAYMENTS_EXPORT_FORMAT_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {PAYMENTS_EXPORT_FORMAT_VALUES!r}")
