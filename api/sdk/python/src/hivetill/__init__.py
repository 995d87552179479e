"""A client of the Hivetill payment gateway."""

from ._async import AsyncHivetill
from ._events import Disconnect, Event, Followed
from ._retry import Retry
from ._sync import Hivetill
from .errors import (
    ApiError,
    AuthenticationError,
    ConflictError,
    ConnectionFailed,
    Detail,
    GoneError,
    HivetillError,
    NotFoundError,
    PermissionDenied,
    RateLimitError,
    ServerError,
    ValidationError,
    WaitTimeout,
)
from .webhooks import SignatureError, verify_webhook

__all__ = [
    "ApiError",
    "AsyncHivetill",
    "AuthenticationError",
    "ConflictError",
    "ConnectionFailed",
    "Detail",
    "Disconnect",
    "Event",
    "Followed",
    "GoneError",
    "Hivetill",
    "HivetillError",
    "NotFoundError",
    "PermissionDenied",
    "RateLimitError",
    "Retry",
    "ServerError",
    "SignatureError",
    "ValidationError",
    "WaitTimeout",
    "verify_webhook",
]
