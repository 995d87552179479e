from typing import Literal

CrossingWindow = Literal['24h', '30d', 'near_single', 'single']

CROSSING_WINDOW_VALUES: set[CrossingWindow] = { '24h', '30d', 'near_single', 'single',  }

def check_crossing_window(value: str) -> CrossingWindow:
    if value in CROSSING_WINDOW_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {CROSSING_WINDOW_VALUES!r}")
