from typing import Literal

PaymentEventDataProviderId = Literal['hive']

PAYMENT_EVENT_DATA_PROVIDER_ID_VALUES: set[PaymentEventDataProviderId] = { 'hive',  }

def check_payment_event_data_provider_id(value: str) -> PaymentEventDataProviderId:
    if value in PAYMENT_EVENT_DATA_PROVIDER_ID_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {PAYMENT_EVENT_DATA_PROVIDER_ID_VALUES!r}")
