from typing import Literal

DeliveryWithAttemptsTrigger = Literal['auto', 'manual', 'test']

DELIVERY_WITH_ATTEMPTS_TRIGGER_VALUES: set[DeliveryWithAttemptsTrigger] = { 'auto', 'manual', 'test',  }

def check_delivery_with_attempts_trigger(value: str) -> DeliveryWithAttemptsTrigger:
    if value in DELIVERY_WITH_ATTEMPTS_TRIGGER_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {DELIVERY_WITH_ATTEMPTS_TRIGGER_VALUES!r}")
