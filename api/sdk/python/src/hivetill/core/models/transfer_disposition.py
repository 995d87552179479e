from typing import Literal

TransferDisposition = Literal['after_cancel', 'after_failure', 'counted', 'fee', 'late', 'self', 'surplus', 'wrong_currency']

TRANSFER_DISPOSITION_VALUES: set[TransferDisposition] = { 'after_cancel', 'after_failure', 'counted', 'fee', 'late', 'self', 'surplus', 'wrong_currency',  }

def check_transfer_disposition(value: str) -> TransferDisposition:
    if value in TRANSFER_DISPOSITION_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {TRANSFER_DISPOSITION_VALUES!r}")
