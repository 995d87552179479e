"""A client of one gateway, for one API key."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

import httpx

from .._connection import base_url_of, checked_key
from ..core import AuthenticatedClient
from .._retry import Retry, RetryPolicy
from .events import AsyncEvents
from .merchants import AsyncApiKeys, AsyncMerchants, AsyncWebhookEndpoints
from .payments import AsyncPayments
from .transport import RetryingAsyncClient
from .unmatched import AsyncUnmatchedTransfers
from .x402 import AsyncX402


class AsyncHivetill:
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
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        url, key = base_url_of(base_url), checked_key(api_key)
        headers = {"authorization": f"Bearer {key}"} if key else {}
        policy = RetryPolicy(max_retries, max_retry_after, on_retry)
        self._http = RetryingAsyncClient(policy, base_url=url, headers=headers, timeout=timeout, transport=transport)
        self.core = AuthenticatedClient(base_url=url, token=key or "").set_async_httpx_client(self._http)
        """The client of the generated core, for its functions in ``hivetill.core.api``. Its calls are retried, too."""
        self.payments = AsyncPayments(self.core)
        self.events = AsyncEvents(self.core)
        self.merchants = AsyncMerchants(self.core)
        self.api_keys = AsyncApiKeys(self.core)
        self.webhook_endpoints = AsyncWebhookEndpoints(self.core)
        self.unmatched = AsyncUnmatchedTransfers(self.core)
        self.x402 = AsyncX402(self.core)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> AsyncHivetill:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()
