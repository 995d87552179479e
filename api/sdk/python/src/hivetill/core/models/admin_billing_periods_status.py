from typing import Literal

AdminBillingPeriodsStatus = Literal['invoiced', 'open', 'overdue', 'paid']

ADMIN_BILLING_PERIODS_STATUS_VALUES: set[AdminBillingPeriodsStatus] = { 'invoiced', 'open', 'overdue', 'paid',  }

def check_admin_billing_periods_status(value: str) -> AdminBillingPeriodsStatus:
    if value in ADMIN_BILLING_PERIODS_STATUS_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {ADMIN_BILLING_PERIODS_STATUS_VALUES!r}")
