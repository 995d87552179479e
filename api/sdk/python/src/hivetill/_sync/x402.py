# Generated from the asynchronous form by generate_sync.py: edit that one.
"""The x402 facilitator: verifies and settles signed payments."""

from __future__ import annotations

import builtins
from collections.abc import Iterator

from ..core.api.unmatched import x402_sales
from ..core.api.x402 import x402_health, x402_settle, x402_supported, x402_verify
from ..core.models import Sale, Settled, Supported, Verified, X402Health, X402Request
from ..core.types import UNSET, Unset
from .resource import Resource, items, key_or_new
from .transport import body


class X402(Resource):
    def supported(self) -> Supported:
        """Return the kinds of payment that are accepted."""
        return body(x402_supported.sync_detailed(client=self._core))

    def health(self) -> X402Health:
        """Return the health of the facilitator."""
        return body(x402_health.sync_detailed(client=self._core))

    def verify(self, payment: X402Request) -> Verified:
        """Check a signed payment without broadcasting it. A refusal has ``is_valid`` false."""
        return body(x402_verify.sync_detailed(client=self._core, body=payment))

    def settle(self, payment: X402Request, *, idempotency_key: str | None = None) -> Settled:
        """Check a signed payment, broadcast it and wait for the ledger. A refusal has ``success`` false.

        For a payment of your own server (``payment_requirements``) give one idempotency key for each request that the
        server received. A payment of this gateway (``session_id``) takes none: the same payment again returns the same
        receipt.
        """
        key = key_or_new(idempotency_key) if isinstance(payment.session_id, Unset) else UNSET
        return body(x402_settle.sync_detailed(client=self._core, body=payment, idempotency_key=key))

    def sales(self, *, limit: int = 100) -> Iterator[Sale]:
        """Yield every sale of the merchant's own resources, newest first; read page after page of ``limit`` sales."""

        def read(cursor: str | Unset) -> tuple[builtins.list[Sale], str | None | Unset]:
            page = body(x402_sales.sync_detailed(client=self._core, cursor=cursor, limit=limit))
            return page.data, page.next_cursor

        return items(read)
