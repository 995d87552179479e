from typing import Literal

ReadyNodeCondition = Literal['disagreeing', 'failing', 'ok', 'rate_limited', 'slow', 'stale', 'unknown']

READY_NODE_CONDITION_VALUES: set[ReadyNodeCondition] = { 'disagreeing', 'failing', 'ok', 'rate_limited', 'slow', 'stale', 'unknown',  }

def check_ready_node_condition(value: str) -> ReadyNodeCondition:
    if value in READY_NODE_CONDITION_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {READY_NODE_CONDITION_VALUES!r}")
