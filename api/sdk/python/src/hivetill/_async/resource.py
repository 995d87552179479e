"""What the resources share: the client of the generated core, and lists of several pages."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from typing import TypeVar

from .._pages import AsyncRead
from ..core import AuthenticatedClient
from ..core.types import UNSET, Unset

T = TypeVar("T")


class AsyncResource:
    """The base class of the resources."""

    def __init__(self, core: AuthenticatedClient) -> None:
        self._core = core


def key_or_new(key: str | None) -> str:
    """Return the caller's idempotency key, or a new one, which the retries of one call share."""
    return key if key is not None else str(uuid.uuid4())


async def items(read: AsyncRead[T]) -> AsyncIterator[T]:
    """Yield the items of all pages, each of which is read when it is needed."""
    cursor: str | Unset = UNSET
    while True:
        page, following = await read(cursor)
        for item in page:
            yield item
        if not following:
            return
        cursor = following
