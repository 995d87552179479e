from typing import Literal

SaleEventType = Literal['x402.settled']

SALE_EVENT_TYPE_VALUES: set[SaleEventType] = { 'x402.settled',  }

def check_sale_event_type(value: str) -> SaleEventType:
    if value in SALE_EVENT_TYPE_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {SALE_EVENT_TYPE_VALUES!r}")
