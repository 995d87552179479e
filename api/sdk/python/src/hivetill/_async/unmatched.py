"""Transfers that match no payment."""

from __future__ import annotations

import builtins
from collections.abc import AsyncIterator

from ..core.api.unmatched import (
    unmatched_assign,
    unmatched_candidates,
    unmatched_get,
    unmatched_ignore,
    unmatched_list,
)
from ..core.models import Assign, Candidates, Ignore, Payment, Unmatched
from ..core.types import UNSET, Unset
from .resource import AsyncResource, items
from .transport import body


class AsyncUnmatchedTransfers(AsyncResource):
    def list_all(self, *, limit: int = 100, status: str | Unset = UNSET) -> AsyncIterator[Unmatched]:
        """Yield every unmatched transfer that matches, newest first; read page after page of ``limit`` transfers."""

        async def read(cursor: str | Unset) -> tuple[builtins.list[Unmatched], str | None | Unset]:
            found = await unmatched_list.asyncio_detailed(
                client=self._core, cursor=cursor, limit=limit, status=status
            )
            page = body(found)
            return page.data, page.next_cursor

        return items(read)

    async def get(self, id: str) -> Unmatched:
        """Return an unmatched transfer."""
        return body(await unmatched_get.asyncio_detailed(id, client=self._core))

    async def candidates(self, id: str) -> Candidates:
        """Return the payments that a transfer may belong to."""
        return body(await unmatched_candidates.asyncio_detailed(id, client=self._core))

    async def assign(self, id: str, payment_id: str) -> Payment:
        """Assign a transfer to a payment, as if its memo had named it."""
        assigned = Assign(payment_id=payment_id)
        return body(await unmatched_assign.asyncio_detailed(id, client=self._core, body=assigned))

    async def ignore(self, id: str, *, note: str | None = None) -> Unmatched:
        """Mark a transfer as ignored."""
        return body(await unmatched_ignore.asyncio_detailed(id, client=self._core, body=Ignore(note=note)))
