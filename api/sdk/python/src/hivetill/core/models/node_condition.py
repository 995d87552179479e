from typing import Literal

NodeCondition = Literal['disagreeing', 'failing', 'ok', 'rate_limited', 'slow', 'stale', 'unknown']

NODE_CONDITION_VALUES: set[NodeCondition] = { 'disagreeing', 'failing', 'ok', 'rate_limited', 'slow', 'stale', 'unknown',  }

def check_node_condition(value: str) -> NodeCondition:
    if value in NODE_CONDITION_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {NODE_CONDITION_VALUES!r}")
