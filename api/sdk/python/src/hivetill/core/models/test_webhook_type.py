from typing import Literal

TestWebhookType = Literal['merchant.account_change', 'payment.exception', 'payment.status_changed', 'refund.completed', 'transfer.unmatched', 'x402.settled']

TEST_WEBHOOK_TYPE_VALUES: set[TestWebhookType] = { 'merchant.account_change', 'payment.exception', 'payment.status_changed', 'refund.completed', 'transfer.unmatched', 'x402.settled',  }

def check_test_webhook_type(value: str) -> TestWebhookType:
    if value in TEST_WEBHOOK_TYPE_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {TEST_WEBHOOK_TYPE_VALUES!r}")
