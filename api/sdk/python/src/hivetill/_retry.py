"""Which requests are repeated, and after how long."""

from __future__ import annotations

import asyncio
import dataclasses
import random
import time
from collections.abc import Callable

import httpx

from .errors import retry_after

FIRST_DELAY_SECONDS = 0.5
LONGEST_DELAY_SECONDS = 8.0

async_sleep = asyncio.sleep
sleep = time.sleep


@dataclasses.dataclass(frozen=True)
class Retry:
    """A retry that is about to happen."""

    attempt: int
    """The number of the attempt that failed, from 1."""
    delay_seconds: float
    """The wait before the next attempt."""
    status: int | None
    """The status of the response; None if none arrived."""
    method: str
    url: str


@dataclasses.dataclass(frozen=True)
class RetryPolicy:
    """How often a request is repeated, and how long a ``Retry-After`` may be."""

    max_retries: int = 3
    max_retry_after_seconds: float = 60.0
    on_retry: Callable[[Retry], None] | None = None

    def next(self, request: httpx.Request, response: httpx.Response | None, attempt: int) -> Retry | None:
        """Return the retry after an attempt, or None if its outcome is final.

        Reads, and requests with an ``Idempotency-Key``, are repeated if no response arrived and after 408, 429 and 5xx.
        Other requests are repeated after 429 only, because the gateway has not executed them.
        """
        is_safe = request.method != "POST" or "idempotency-key" in request.headers
        status = response.status_code if response is not None else None
        is_transient = status is None or status == 408 or status >= 500
        if attempt > self.max_retries or not (status == 429 or (is_safe and is_transient)):
            return None
        wanted = retry_after(response.headers) if response is not None else None
        if wanted is not None and wanted > self.max_retry_after_seconds:
            return None
        delay = backoff(attempt) if wanted is None else wanted
        return Retry(attempt, delay, status, request.method, str(request.url))


def backoff(failures: int) -> float:
    """Return the wait after some failures: it doubles, up to 8 seconds, less up to a half by chance."""
    full = min(LONGEST_DELAY_SECONDS, FIRST_DELAY_SECONDS * 2.0 ** min(failures - 1, 16))
    return full * (1 - random.random() / 2)
