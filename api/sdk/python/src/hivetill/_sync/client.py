# Generated from the asynchronous form by generate_sync.py: edit that one.
"""A client of one gateway, for one API key."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

import httpx

from .._connection import base_url_of, checked_key
from ..core import AuthenticatedClient
from .._retry import Retry, RetryPolicy
from .events import Events
from .merchants import ApiKeys, Merchants, WebhookEndpoints
from .payments import Payments
from .transport import RetryingClient
from .unmatched import UnmatchedTransfers
from .x402 import X402


class Hivetill:
    """A client of one gateway, for one API key. Close it, or use it in a ``with`` block.

    Reads, and calls with an idempotency key, are repeated up to ``max_retries`` times. ``timeout`` is the time limit of
    one attempt in seconds. ``transport`` replaces the connections of httpx, for proxies and tests.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str | None = None,
        *,
        timeout: float = 30.0,
        max_retries: int = 3,
        max_retry_after: float = 60.0,
        on_retry: Callable[[Retry], None] | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        url, key = base_url_of(base_url), checked_key(api_key)
        headers = {"authorization": f"Bearer {key}"} if key else {}
        policy = RetryPolicy(max_retries, max_retry_after, on_retry)
        self._http = RetryingClient(policy, base_url=url, headers=headers, timeout=timeout, transport=transport)
        self.core = AuthenticatedClient(base_url=url, token=key or "").set_httpx_client(self._http)
        """The client of the generated core, for its functions in ``hivetill.core.api``. Its calls are retried, too."""
        self.payments = Payments(self.core)
        self.events = Events(self.core)
        self.merchants = Merchants(self.core)
        self.api_keys = ApiKeys(self.core)
        self.webhook_endpoints = WebhookEndpoints(self.core)
        self.unmatched = UnmatchedTransfers(self.core)
        self.x402 = X402(self.core)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Hivetill:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
