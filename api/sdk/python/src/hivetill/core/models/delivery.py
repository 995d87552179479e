from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.delivery_status import check_delivery_status
from ..models.delivery_status import DeliveryStatus
from ..models.delivery_trigger import check_delivery_trigger
from ..models.delivery_trigger import DeliveryTrigger
from typing import cast
import datetime






T = TypeVar("T", bound="Delivery")



@_attrs_define
class Delivery:
    """ 
        Attributes:
            attempts (int): How many attempts were made.
            created_at (datetime.datetime): When it was created.
            endpoint_id (str): The endpoint. The id of the default endpoint is that of the merchant with another prefix.
            event_id (str): The event that is delivered.
            id (str): The id of the delivery.
            last_attempt_at (datetime.datetime | None): When the last attempt was made.
            last_http_status (int | None): The HTTP status of the last response.
            last_outcome (None | str): How the last attempt ended.
            merchant_id (str): The id of the merchant.
            next_attempt_at (datetime.datetime | None): When the next attempt is due; `null` when there is none.
            status (DeliveryStatus): The state of the delivery. `held` and `failed` deliveries can be replayed.
            trigger (DeliveryTrigger): Why it was sent: the event itself, a request to send it again, or a test.
     """

    attempts: int
    created_at: datetime.datetime
    endpoint_id: str
    event_id: str
    id: str
    last_attempt_at: datetime.datetime | None
    last_http_status: int | None
    last_outcome: None | str
    merchant_id: str
    next_attempt_at: datetime.datetime | None
    status: DeliveryStatus
    trigger: DeliveryTrigger





    def to_dict(self) -> dict[str, Any]:
        attempts = self.attempts

        created_at = self.created_at.isoformat()

        endpoint_id = self.endpoint_id

        event_id = self.event_id

        id = self.id

        last_attempt_at: None | str
        if isinstance(self.last_attempt_at, datetime.datetime):
            last_attempt_at = self.last_attempt_at.isoformat()
        else:
            last_attempt_at = self.last_attempt_at

        last_http_status: int | None
        last_http_status = self.last_http_status

        last_outcome: None | str
        last_outcome = self.last_outcome

        merchant_id = self.merchant_id

        next_attempt_at: None | str
        if isinstance(self.next_attempt_at, datetime.datetime):
            next_attempt_at = self.next_attempt_at.isoformat()
        else:
            next_attempt_at = self.next_attempt_at

        status: str = self.status

        trigger: str = self.trigger


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "attempts": attempts,
            "createdAt": created_at,
            "endpointId": endpoint_id,
            "eventId": event_id,
            "id": id,
            "lastAttemptAt": last_attempt_at,
            "lastHttpStatus": last_http_status,
            "lastOutcome": last_outcome,
            "merchantId": merchant_id,
            "nextAttemptAt": next_attempt_at,
            "status": status,
            "trigger": trigger,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        attempts = d.pop("attempts")

        created_at = datetime.datetime.fromisoformat(d.pop("createdAt"))




        endpoint_id = d.pop("endpointId")

        event_id = d.pop("eventId")

        id = d.pop("id")

        def _parse_last_attempt_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                last_attempt_at_type_0 = datetime.datetime.fromisoformat(data)



                return last_attempt_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        last_attempt_at = _parse_last_attempt_at(d.pop("lastAttemptAt"))


        def _parse_last_http_status(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        last_http_status = _parse_last_http_status(d.pop("lastHttpStatus"))


        def _parse_last_outcome(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        last_outcome = _parse_last_outcome(d.pop("lastOutcome"))


        merchant_id = d.pop("merchantId")

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


        status = check_delivery_status(d.pop("status"))




        trigger = check_delivery_trigger(d.pop("trigger"))




        delivery = cls(
            attempts=attempts,
            created_at=created_at,
            endpoint_id=endpoint_id,
            event_id=event_id,
            id=id,
            last_attempt_at=last_attempt_at,
            last_http_status=last_http_status,
            last_outcome=last_outcome,
            merchant_id=merchant_id,
            next_attempt_at=next_attempt_at,
            status=status,
            trigger=trigger,
        )

        return delivery

