from typing import Literal

TestWebhookStatus = Literal['completed', 'failed', 'pending', 'processing', 'system_cancelled', 'user_cancelled']

TEST_WEBHOOK_STATUS_VALUES: set[TestWebhookStatus] = { 'completed', 'failed', 'pending', 'processing', 'system_cancelled', 'user_cancelled',  }

def check_test_webhook_status(value: str) -> TestWebhookStatus:
    if value in TEST_WEBHOOK_STATUS_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {TEST_WEBHOOK_STATUS_VALUES!r}")
