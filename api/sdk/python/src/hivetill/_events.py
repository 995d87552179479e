"""Events as the webhook, the list and the stream have them."""

from __future__ import annotations

import dataclasses
from typing import Any

from .core.models import AccountEvent, PaymentEvent, SaleEvent, UnmatchedEvent
from .errors import HivetillError

Event = PaymentEvent | SaleEvent | AccountEvent | UnmatchedEvent

_TYPES: dict[str, type[PaymentEvent] | type[SaleEvent] | type[AccountEvent] | type[UnmatchedEvent]] = {
    "payment.status_changed": PaymentEvent,
    "payment.exception": PaymentEvent,
    "x402.settled": SaleEvent,
    "merchant.account_change": AccountEvent,
    "refund.completed": PaymentEvent,
    "transfer.unmatched": UnmatchedEvent,
}


def parse_event(body: dict[str, Any]) -> Event:
    """Return the event of a body; raise a ``KeyError``, ``TypeError`` or ``ValueError`` if it is none."""
    return _TYPES[body["type"]].from_dict(body)


@dataclasses.dataclass(frozen=True)
class Followed:
    """An event, and the cursor behind it: store it once the event is handled."""

    event: Event
    cursor: str


@dataclasses.dataclass(frozen=True)
class Disconnect:
    """A connection that was lost."""

    cursor: str | None
    """The cursor at which the stream resumes."""
    delay_seconds: float
    cause: HivetillError
