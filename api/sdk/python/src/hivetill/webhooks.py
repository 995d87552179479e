"""Verifies webhooks."""

from __future__ import annotations

import base64
import binascii
import dataclasses
import hashlib
import hmac
import json
import re
import time
from collections.abc import Iterable, Mapping
from typing import Literal

from ._events import Event, parse_event
from .errors import HivetillError

SignatureProblem = Literal["no_signature", "timestamp_out_of_tolerance", "no_match", "malformed_body"]

_PROBLEMS: dict[SignatureProblem, str] = {
    "no_signature": "the request has no signature: no X-Hivetill-Signature and no webhook-signature",
    "timestamp_out_of_tolerance": "the signature is too old, or from the future: check the clock",
    "no_match": "no signature was made with this secret for this body: pass the raw body",
    "malformed_body": "the signed body is no event",
}


class SignatureError(HivetillError):
    """The request is no webhook of the gateway, or no recent one. Respond with 401 and do nothing else."""

    def __init__(self, problem: SignatureProblem) -> None:
        super().__init__(_PROBLEMS[problem])
        self.problem: SignatureProblem = problem


@dataclasses.dataclass(frozen=True)
class _Candidate:
    """A time and the signatures over it: the HMAC must equal one of them."""

    seconds: float
    key: bytes
    prefix: bytes
    signatures: tuple[bytes, ...]

    def matches(self, body: bytes) -> bool:
        wanted = hmac.new(self.key, self.prefix + body, hashlib.sha256).digest()
        return any([hmac.compare_digest(wanted, each) for each in self.signatures])


def verify_webhook(
    body: bytes | str,
    headers: Mapping[str, str] | Iterable[tuple[str, str]],
    secret: str | Iterable[str],
    *,
    tolerance_seconds: float = 300,
    now: float | None = None,
) -> Event:
    """Return the event of a webhook if its signature is genuine and recent; raise ``SignatureError`` otherwise.

    One valid signature is enough, of either family: ``X-Hivetill-*`` or Standard Webhooks (``webhook-*``). ``body`` is
    the body as it was received. Pass several secrets while your servers are switched to a new one. ``now`` is a Unix
    time.
    """
    raw = body.encode() if isinstance(body, str) else body
    secrets = [secret] if isinstance(secret, str) else list(secret)
    if not secrets or not all(each.startswith("whsec_") for each in secrets):
        raise HivetillError("the webhook secret must begin with whsec_")
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    given = {name.lower(): value for name, value in pairs}
    candidates = [found for each in secrets for found in (_hivetill(given, each), _standard(given, each)) if found]
    if not candidates:
        raise SignatureError("no_signature")
    moment = time.time() if now is None else now
    recent = [each for each in candidates if abs(moment - each.seconds) <= tolerance_seconds]
    if not recent:
        raise SignatureError("timestamp_out_of_tolerance")
    if not any([each.matches(raw) for each in recent]):
        raise SignatureError("no_match")
    try:
        return parse_event(json.loads(raw))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise SignatureError("malformed_body") from error


def _hivetill(headers: Mapping[str, str], secret: str) -> _Candidate | None:
    """The family ``X-Hivetill-*``: hex over ``{ms}.{body}`` with the text of the secret."""
    given = headers.get("x-hivetill-timestamp", "")
    names = [f"x-hivetill-signature{suffix}" for suffix in ("", "-previous", "-previous-2", "-previous-3")]
    found = tuple(each for each in (_from_hex(headers.get(name, "")) for name in names) if each)
    if not re.fullmatch(r"[0-9]{1,16}", given) or not found:
        return None
    return _Candidate(int(given) / 1000, secret.encode(), f"{given}.".encode(), found)


def _standard(headers: Mapping[str, str], secret: str) -> _Candidate | None:
    """Standard Webhooks: base64 over ``{id}.{s}.{body}`` with the bytes of the secret."""
    id, given = headers.get("webhook-id"), headers.get("webhook-timestamp", "")
    parts = headers.get("webhook-signature", "").split(" ")
    found = tuple(each for each in (_from_base64(part[3:]) for part in parts if part.startswith("v1,")) if each)
    key = _from_base64(secret.removeprefix("whsec_"))
    if id is None or not re.fullmatch(r"[0-9]{1,13}", given) or not found or not key:
        return None
    return _Candidate(int(given), key, f"{id}.{given}.".encode(), found)


def _from_hex(text: str) -> bytes | None:
    try:
        return binascii.unhexlify(text)
    except ValueError:
        return None


def _from_base64(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        return None
