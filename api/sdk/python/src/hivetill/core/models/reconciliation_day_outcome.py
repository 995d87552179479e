from typing import Literal

ReconciliationDayOutcome = Literal['mismatch', 'not_checked', 'ok']

RECONCILIATION_DAY_OUTCOME_VALUES: set[ReconciliationDayOutcome] = { 'mismatch', 'not_checked', 'ok',  }

def check_reconciliation_day_outcome(value: str) -> ReconciliationDayOutcome:
    if value in RECONCILIATION_DAY_OUTCOME_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {RECONCILIATION_DAY_OUTCOME_VALUES!r}")
