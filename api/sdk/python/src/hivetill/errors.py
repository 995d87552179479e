"""The errors that this package raises."""

from __future__ import annotations

import dataclasses
import email.utils
import json
import time
from collections.abc import Mapping
from typing import Any


class HivetillError(Exception):
    """The base class of every error of this package."""


class ConnectionFailed(HivetillError):
    """No complete response arrived, also after the permitted retries. ``__cause__`` has the last failure."""


class WaitTimeout(HivetillError):
    """A payment did not reach a final status in time."""

    def __init__(self, payment_id: str, status: str) -> None:
        super().__init__(f"payment {payment_id} is still {status}")
        self.payment_id = payment_id
        self.status = status


@dataclasses.dataclass(frozen=True)
class Detail:
    """A field that was refused, and why."""

    field: str
    message: str


class ApiError(HivetillError):
    """The gateway refused a request. Compare ``reason``, a word of a closed list."""

    def __init__(self, status: int, content: bytes, headers: Mapping[str, str]) -> None:
        fields = _object(content)
        message = fields.get("statusMessage") or f"the gateway responded with status {status}"
        self.status = status
        self.reason = str(fields.get("reason") or "unknown")
        self.code = str(fields.get("code") or "")
        self.request_id = str(fields.get("requestId") or headers.get("x-request-id", ""))
        self.details = _details(fields.get("details"))
        self.retry_after_seconds = retry_after(headers)
        next_cursor = fields.get("nextCursor")
        self.next_cursor = next_cursor if isinstance(next_cursor, str) else None
        super().__init__(f"{message} ({status} {self.reason})")

    @property
    def field(self) -> str | None:
        """The first field that was refused."""
        return self.details[0].field if self.details else None

    @staticmethod
    def of(status: int, content: bytes, headers: Mapping[str, str]) -> ApiError:
        """Return the error of a response, in the class of its status."""
        known = _CLASSES.get(status) or (ServerError if status >= 500 else ApiError)
        return known(status, content, headers)


class ValidationError(ApiError):
    """400 or 422: the request is wrong, and fails again. ``field`` names the first field that was refused."""


class AuthenticationError(ApiError):
    """401: the API key is missing or invalid."""


class PermissionDenied(ApiError):
    """403: the key or the merchant may not do it."""


class NotFoundError(ApiError):
    """404: there is no such record."""


class ConflictError(ApiError):
    """409: the state of the record does not permit it."""


class GoneError(ApiError):
    """410: the record, or the cursor, has expired."""


class RateLimitError(ApiError):
    """429: too many requests, also after the permitted retries."""


class ServerError(ApiError):
    """5xx: the gateway failed, also after the permitted retries."""


_CLASSES: dict[int, type[ApiError]] = {
    400: ValidationError,
    401: AuthenticationError,
    403: PermissionDenied,
    404: NotFoundError,
    409: ConflictError,
    410: GoneError,
    422: ValidationError,
    429: RateLimitError,
}


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of a ``Retry-After`` header, which has a number or a date."""
    value = headers.get("retry-after", "")
    if value.isascii() and value.isdigit():
        return float(value)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (TypeError, ValueError):
        return None


def _object(content: bytes) -> dict[str, Any]:
    try:
        body = json.loads(content)
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def _details(value: object) -> tuple[Detail, ...]:
    rows = value if isinstance(value, list) else []
    pairs = ((row.get("field"), row.get("message")) for row in rows if isinstance(row, dict))
    return tuple(Detail(field, message) for field, message in pairs if isinstance(field, str) and isinstance(message, str))
