from typing import Literal

SupportedKindsItemScheme = Literal['exact']

SUPPORTED_KINDS_ITEM_SCHEME_VALUES: set[SupportedKindsItemScheme] = { 'exact',  }

def check_supported_kinds_item_scheme(value: str) -> SupportedKindsItemScheme:
    if value in SUPPORTED_KINDS_ITEM_SCHEME_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {SUPPORTED_KINDS_ITEM_SCHEME_VALUES!r}")
