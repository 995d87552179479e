from typing import Literal

DeliveryWithAttemptsAttemptLogItemTrigger = Literal['auto', 'manual', 'test']

DELIVERY_WITH_ATTEMPTS_ATTEMPT_LOG_ITEM_TRIGGER_VALUES: set[DeliveryWithAttemptsAttemptLogItemTrigger] = { 'auto', 'manual', 'test',  }

def check_delivery_with_attempts_attempt_log_item_trigger(value: str) -> DeliveryWithAttemptsAttemptLogItemTrigger:
    if value in DELIVERY_WITH_ATTEMPTS_ATTEMPT_LOG_ITEM_TRIGGER_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {DELIVERY_WITH_ATTEMPTS_ATTEMPT_LOG_ITEM_TRIGGER_VALUES!r}")
