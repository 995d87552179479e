from typing import Literal

PaymentProviderId = Literal['hive']

PAYMENT_PROVIDER_ID_VALUES: set[PaymentProviderId] = { 'hive',  }

def check_payment_provider_id(value: str) -> PaymentProviderId:
    if value in PAYMENT_PROVIDER_ID_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {PAYMENT_PROVIDER_ID_VALUES!r}")
