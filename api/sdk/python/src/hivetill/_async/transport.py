"""Sends requests, repeats those that are safe to repeat, and raises what the gateway refuses."""

from __future__ import annotations

from typing import Any, TypeVar

import httpx

from ..core.models import Error
from ..core.types import Response
from .._retry import RetryPolicy, async_sleep
from ..errors import ApiError, ConnectionFailed, HivetillError

T = TypeVar("T")


class RetryingAsyncClient(httpx.AsyncClient):
    """An HTTP client with a retry policy."""

    def __init__(self, policy: RetryPolicy, **options: Any) -> None:
        super().__init__(**options)
        self._policy = policy

    async def send(self, request: httpx.Request, *, stream: bool = False, **options: Any) -> httpx.Response:
        """Send a request; raise an ``ApiError`` for a refusal. Streams are not repeated: their reader resumes them."""
        attempt = 0
        while True:
            attempt += 1
            failure: httpx.TransportError | None = None
            response: httpx.Response | None = None
            try:
                response = await super().send(request, stream=stream, **options)
                if response.is_error and stream:
                    await response.aread()
            except httpx.TransportError as error:
                failure = error
            if response is not None and not response.is_error:
                return response
            retry = None if stream else self._policy.next(request, response, attempt)
            if retry is None:
                if response is not None:
                    await response.aclose()
                    raise ApiError.of(response.status_code, response.content, response.headers)
                url = request.url.copy_with(query=None)
                raise ConnectionFailed(f"{request.method} {url}: {failure or type(failure).__name__}") from failure
            if self._policy.on_retry:
                self._policy.on_retry(retry)
            await async_sleep(retry.delay_seconds)


def body(response: Response[Error | T]) -> T:
    """Return the body of a successful response."""
    parsed = response.parsed
    if parsed is None or isinstance(parsed, Error):
        raise HivetillError(f"the response with status {response.status_code} has no body")
    return parsed
