from typing import Literal

ResolveKind = Literal['accepted', 'ignored', 'refunded']

RESOLVE_KIND_VALUES: set[ResolveKind] = { 'accepted', 'ignored', 'refunded',  }

def check_resolve_kind(value: str) -> ResolveKind:
    if value in RESOLVE_KIND_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {RESOLVE_KIND_VALUES!r}")
