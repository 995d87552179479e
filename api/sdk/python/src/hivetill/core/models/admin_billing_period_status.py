from typing import Literal

AdminBillingPeriodStatus = Literal['invoiced', 'open', 'overdue', 'paid']

ADMIN_BILLING_PERIOD_STATUS_VALUES: set[AdminBillingPeriodStatus] = { 'invoiced', 'open', 'overdue', 'paid',  }

def check_admin_billing_period_status(value: str) -> AdminBillingPeriodStatus:
    if value in ADMIN_BILLING_PERIOD_STATUS_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {ADMIN_BILLING_PERIOD_STATUS_VALUES!r}")
