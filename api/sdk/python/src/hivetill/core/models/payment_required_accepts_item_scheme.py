from typing import Literal

PaymentRequiredAcceptsItemScheme = Literal['exact']

PAYMENT_REQUIRED_ACCEPTS_ITEM_SCHEME_VALUES: set[PaymentRequiredAcceptsItemScheme] = { 'exact',  }

def check_payment_required_accepts_item_scheme(value: str) -> PaymentRequiredAcceptsItemScheme:
    if value in PAYMENT_REQUIRED_ACCEPTS_ITEM_SCHEME_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {PAYMENT_REQUIRED_ACCEPTS_ITEM_SCHEME_VALUES!r}")
