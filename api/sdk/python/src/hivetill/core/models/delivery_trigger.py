from typing import Literal

DeliveryTrigger = Literal['auto', 'manual', 'test']

DELIVERY_TRIGGER_VALUES: set[DeliveryTrigger] = { 'auto', 'manual', 'test',  }

def check_delivery_trigger(value: str) -> DeliveryTrigger:
    if value in DELIVERY_TRIGGER_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {DELIVERY_TRIGGER_VALUES!r}")
