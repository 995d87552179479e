from typing import Literal

SaleKind = Literal['x402']

SALE_KIND_VALUES: set[SaleKind] = { 'x402',  }

def check_sale_kind(value: str) -> SaleKind:
    if value in SALE_KIND_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {SALE_KIND_VALUES!r}")
