"""What a test calls: in the asynchronous and in the synchronous form of the journeys."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

AsyncCall = Callable[[], Awaitable[T]]
Call = Callable[[], T]
