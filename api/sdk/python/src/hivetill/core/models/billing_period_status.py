from typing import Literal

BillingPeriodStatus = Literal['invoiced', 'open', 'overdue', 'paid']

BILLING_PERIOD_STATUS_VALUES: set[BillingPeriodStatus] = { 'invoiced', 'open', 'overdue', 'paid',  }

def check_billing_period_status(value: str) -> BillingPeriodStatus:
    if value in BILLING_PERIOD_STATUS_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {BILLING_PERIOD_STATUS_VALUES!r}")
