from typing import Literal

TransferFinality = Literal['irreversible', 'orphaned', 'reversible']

TRANSFER_FINALITY_VALUES: set[TransferFinality] = { 'irreversible', 'orphaned', 'reversible',  }

def check_transfer_finality(value: str) -> TransferFinality:
    if value in TRANSFER_FINALITY_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {TRANSFER_FINALITY_VALUES!r}")
