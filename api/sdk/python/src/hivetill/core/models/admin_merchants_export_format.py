from typing import Literal

AdminMerchantsExportFormat = Literal['csv', 'json']

ADMIN_MERCHANTS_EXPORT_FORMAT_VALUES: set[AdminMerchantsExportFormat] = { 'csv', 'json',  }

def check_admin_merchants_export_format(value: str) -> AdminMerchantsExportFormat:
    if value in ADMIN_MERCHANTS_EXPORT_FORMAT_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {ADMIN_MERCHANTS_EXPORT_FORMAT_VALUES!r}")
