from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.delivery_with_attempts_attempt_log_item_trigger import check_delivery_with_attempts_attempt_log_item_trigger
from ..models.delivery_with_attempts_attempt_log_item_trigger import DeliveryWithAttemptsAttemptLogItemTrigger
from typing import cast
import datetime

if TYPE_CHECKING:
  from ..models.delivery_with_attempts_attempt_log_item_request_headers import DeliveryWithAttemptsAttemptLogItemRequestHeaders





T = TypeVar("T", bound="DeliveryWithAttemptsAttemptLogItem")



@_attrs_define
class DeliveryWithAttemptsAttemptLogItem:
    """ 
        Attributes:
            attempt (int): The number of the attempt, from 1.
            duration_ms (int): How long it took, in milliseconds.
            ended_at (datetime.datetime): When it ended.
            http_status (int | None): The HTTP status of the response; `null` when there was none.
            next_attempt_at (datetime.datetime | None): When the next attempt is due; `null` when there is none.
            outcome (str): How it ended: `success`, `http_error` (any other response), `timeout`, or the network error:
                `refused` (connection refused), `reset` (connection reset), `dns`, `tls`, `connect` (any other), `blocked` (the
                IP address is not allowed).
            request_bytes_sha_256 (str): The SHA-256 of the body that was sent, in hex.
            request_headers (DeliveryWithAttemptsAttemptLogItemRequestHeaders): The headers that were sent, without
                signatures. Empty if they are older than the retention.
            response_snippet (str): The beginning of the response's body.
            scheduled_at (datetime.datetime): When the attempt was due.
            started_at (datetime.datetime): When it began.
            trigger (DeliveryWithAttemptsAttemptLogItemTrigger): Why it was sent: the event itself, a request to send it
                again, or a test.
            url (str): Where events are sent.
     """

    attempt: int
    duration_ms: int
    ended_at: datetime.datetime
    http_status: int | None
    next_attempt_at: datetime.datetime | None
    outcome: str
    request_bytes_sha_256: str
    request_headers: DeliveryWithAttemptsAttemptLogItemRequestHeaders
    response_snippet: str
    scheduled_at: datetime.datetime
    started_at: datetime.datetime
    trigger: DeliveryWithAttemptsAttemptLogItemTrigger
    url: str





    def to_dict(self) -> dict[str, Any]:
        from ..models.delivery_with_attempts_attempt_log_item_request_headers import DeliveryWithAttemptsAttemptLogItemRequestHeaders # noqa: PLC0415
        attempt = self.attempt

        duration_ms = self.duration_ms

        ended_at = self.ended_at.isoformat()

        http_status: int | None
        http_status = self.http_status

        next_attempt_at: None | str
        if isinstance(self.next_attempt_at, datetime.datetime):
            next_attempt_at = self.next_attempt_at.isoformat()
        else:
            next_attempt_at = self.next_attempt_at

        outcome = self.outcome

        request_bytes_sha_256 = self.request_bytes_sha_256

        request_headers = self.request_headers.to_dict()

        response_snippet = self.response_snippet

        scheduled_at = self.scheduled_at.isoformat()

        started_at = self.started_at.isoformat()

        trigger: str = self.trigger

        url = self.url


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "attempt": attempt,
            "durationMs": duration_ms,
            "endedAt": ended_at,
            "httpStatus": http_status,
            "nextAttemptAt": next_attempt_at,
            "outcome": outcome,
            "requestBytesSha256": request_bytes_sha_256,
            "requestHeaders": request_headers,
            "responseSnippet": response_snippet,
            "scheduledAt": scheduled_at,
            "startedAt": started_at,
            "trigger": trigger,
            "url": url,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.delivery_with_attempts_attempt_log_item_request_headers import DeliveryWithAttemptsAttemptLogItemRequestHeaders # noqa: PLC0415
        d = dict(src_dict)
        attempt = d.pop("attempt")

        duration_ms = d.pop("durationMs")

        ended_at = datetime.datetime.fromisoformat(d.pop("endedAt"))




        def _parse_http_status(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        http_status = _parse_http_status(d.pop("httpStatus"))


        def _parse_next_attempt_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                next_attempt_at_type_0 = datetime.datetime.fromisoformat(data)



                return next_attempt_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        next_attempt_at = _parse_next_attempt_at(d.pop("nextAttemptAt"))


        outcome = d.pop("outcome")

        request_bytes_sha_256 = d.pop("requestBytesSha256")

        request_headers = DeliveryWithAttemptsAttemptLogItemRequestHeaders.from_dict(d.pop("requestHeaders"))




        response_snippet = d.pop("responseSnippet")

        scheduled_at = datetime.datetime.fromisoformat(d.pop("scheduledAt"))




        started_at = datetime.datetime.fromisoformat(d.pop("startedAt"))




        trigger = check_delivery_with_attempts_attempt_log_item_trigger(d.pop("trigger"))




        url = d.pop("url")

        delivery_with_attempts_attempt_log_item = cls(
            attempt=attempt,
            duration_ms=duration_ms,
            ended_at=ended_at,
            http_status=http_status,
            next_attempt_at=next_attempt_at,
            outcome=outcome,
            request_bytes_sha_256=request_bytes_sha_256,
            request_headers=request_headers,
            response_snippet=response_snippet,
            scheduled_at=scheduled_at,
            started_at=started_at,
            trigger=trigger,
            url=url,
        )

        return delivery_with_attempts_attempt_log_item

