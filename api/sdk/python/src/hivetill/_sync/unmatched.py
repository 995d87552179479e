# Generated from the asynchronous form by generate_sync.py: edit that one.
"""Transfers that match no payment."""

from __future__ import annotations

import builtins
from collections.abc import Iterator

from ..core.api.unmatched import (
    unmatched_assign,
    unmatched_candidates,
    unmatched_get,
    unmatched_ignore,
    unmatched_list,
)
from ..core.models import Assign, Candidates, Ignore, Payment, Unmatched
from ..core.types import UNSET, Unset
from .resource import Resource, items
from .transport import body


class UnmatchedTransfers(Resource):
    def list_all(self, *, limit: int = 100, status: str | Unset = UNSET) -> Iterator[Unmatched]:
        """Yield every unmatched transfer that matches, newest first; read page after page of ``limit`` transfers."""

        def read(cursor: str | Unset) -> tuple[builtins.list[Unmatched], str | None | Unset]:
            found = unmatched_list.sync_detailed(
                client=self._core, cursor=cursor, limit=limit, status=status
            )
            page = body(found)
            return page.data, page.next_cursor

        return items(read)

    def get(self, id: str) -> Unmatched:
        """Return an unmatched transfer."""
        return body(unmatched_get.sync_detailed(id, client=self._core))

    def candidates(self, id: str) -> Candidates:
        """Return the payments that a transfer may belong to."""
        return body(unmatched_candidates.sync_detailed(id, client=self._core))

    def assign(self, id: str, payment_id: str) -> Payment:
        """Assign a transfer to a payment, as if its memo had named it."""
        assigned = Assign(payment_id=payment_id)
        return body(unmatched_assign.sync_detailed(id, client=self._core, body=assigned))

    def ignore(self, id: str, *, note: str | None = None) -> Unmatched:
        """Mark a transfer as ignored."""
        return body(unmatched_ignore.sync_detailed(id, client=self._core, body=Ignore(note=note)))
