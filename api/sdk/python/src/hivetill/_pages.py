"""How the pages of a list are read: from a cursor, the items and the next cursor."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from .core.types import Unset

T = TypeVar("T")

AsyncRead = Callable[[str | Unset], Awaitable[tuple[Sequence[T], str | Unset | None]]]
Read = Callable[[str | Unset], tuple[Sequence[T], str | Unset | None]]
