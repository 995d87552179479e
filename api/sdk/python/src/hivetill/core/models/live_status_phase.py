from typing import Literal

LiveStatusPhase = Literal['cancelled', 'cancelling', 'checking', 'completed', 'expired', 'failed', 'part', 'processing', 'seen', 'waiting']

LIVE_STATUS_PHASE_VALUES: set[LiveStatusPhase] = { 'cancelled', 'cancelling', 'checking', 'completed', 'expired', 'failed', 'part', 'processing', 'seen', 'waiting',  }

def check_live_status_phase(value: str) -> LiveStatusPhase:
    if value in LIVE_STATUS_PHASE_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {LIVE_STATUS_PHASE_VALUES!r}")
