"""Events: the list, and the live stream that resumes after a lost connection."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable

import httpx

from .._events import Disconnect, Event, Followed, parse_event
from ..core.api.events import events_get, events_list
from ..core.models import EventList
from .._retry import async_sleep, backoff
from .._sse import Parser
from ..errors import ApiError, ConnectionFailed, HivetillError
from .resource import AsyncResource
from .transport import body


class AsyncEvents(AsyncResource):
    async def list(self, *, after: str = "", limit: int = 20) -> EventList:
        """Return the events behind a cursor, oldest first."""
        return body(await events_list.asyncio_detailed(client=self._core, after=after, limit=limit))

    async def get(self, id: str) -> Event:
        """Return an event: the body of its webhook."""
        response = await events_get.asyncio_detailed(id, client=self._core)
        return parse_event(json.loads(response.content))

    async def follow(
        self,
        *,
        after: str | None = None,
        idle_timeout: float = 45.0,
        on_disconnect: Callable[[Disconnect], None] | None = None,
    ) -> AsyncIterator[Followed]:
        """Yield events as they happen, without end.

        ``after`` is the cursor to continue behind; ``"0"`` begins with the oldest event, None with the next one. A lost
        connection is opened again behind the last event, without a gap; so is one that is silent for ``idle_timeout``
        seconds (the gateway sends something every 15). After a restore of the gateway, events may come again under the
        ids that they had. A request that cannot succeed, such as one with an invalid API key, raises its ``ApiError``.
        """
        cursor = after
        failures = 0
        while True:
            cause: HivetillError = ConnectionFailed("the gateway ended the stream")
            try:
                async for id, event in self._connected(cursor, idle_timeout):
                    failures = 0
                    cursor = id or cursor
                    if event is not None:
                        yield Followed(event, cursor or "")
            except ApiError as error:
                # The cursor of another epoch: the gateway was restored from a backup.
                is_gone = error.status == 410 and error.next_cursor is not None
                if not is_gone and error.status not in (408, 429) and error.status < 500:
                    raise
                cursor = error.next_cursor if is_gone else cursor
                cause = error
            except ConnectionFailed as error:
                cause = error
            except httpx.TransportError as error:
                cause = ConnectionFailed(f"the connection was lost: {error or type(error).__name__}")
            failures += 1
            wanted = cause.retry_after_seconds if isinstance(cause, ApiError) else None
            delay = backoff(failures) if wanted is None else wanted
            if on_disconnect:
                on_disconnect(Disconnect(cursor, delay, cause))
            await async_sleep(delay)

    async def _connected(self, cursor: str | None, idle: float) -> AsyncIterator[tuple[str | None, Event | None]]:
        """Yield the cursors and events of one connection; the first message has a cursor only."""
        headers = {"accept": "text/event-stream"}
        if cursor is not None:
            headers["last-event-id"] = cursor
        http = self._core.get_async_httpx_client()
        timeout = httpx.Timeout(30.0, read=idle)
        async with http.stream("GET", "/api/public/events/stream", headers=headers, timeout=timeout) as response:
            parser = Parser()
            async for part in response.aiter_bytes():
                for message in parser.feed(part):
                    is_event = message.event != "ready" and message.data != ""
                    yield message.id, parse_event(json.loads(message.data)) if is_event else None
