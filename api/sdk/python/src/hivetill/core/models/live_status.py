from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.live_status_phase import check_live_status_phase
from ..models.live_status_phase import LiveStatusPhase
from ..models.live_status_status import check_live_status_status
from ..models.live_status_status import LiveStatusStatus
from typing import cast
import datetime






T = TypeVar("T", bound="LiveStatus")



@_attrs_define
class LiveStatus:
    """ The live status of the checkout page: the payment's state and the text to show.

        Attributes:
            amount_remaining (str): What is still missing, in the smallest unit.
            completed_at (datetime.datetime | None): When the payment was completed; `null` before.
            expired (bool): Whether the payment has expired.
            headline (str): In the language of the request.
            id (str): The id of the payment.
            message (str): In the language of the request.
            phase (LiveStatusPhase): What the checkout page shows.
            sequence (int): Rises by one with each event of the payment; 1 at creation.
            status (LiveStatusStatus): The state of the payment.
            version (str): A version that changes whenever the page would change.
     """

    amount_remaining: str
    completed_at: datetime.datetime | None
    expired: bool
    headline: str
    id: str
    message: str
    phase: LiveStatusPhase
    sequence: int
    status: LiveStatusStatus
    version: str





    def to_dict(self) -> dict[str, Any]:
        amount_remaining = self.amount_remaining

        completed_at: None | str
        if isinstance(self.completed_at, datetime.datetime):
            completed_at = self.completed_at.isoformat()
        else:
            completed_at = self.completed_at

        expired = self.expired

        headline = self.headline

        id = self.id

        message = self.message

        phase: str = self.phase

        sequence = self.sequence

        status: str = self.status

        version = self.version


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "amountRemaining": amount_remaining,
            "completedAt": completed_at,
            "expired": expired,
            "headline": headline,
            "id": id,
            "message": message,
            "phase": phase,
            "sequence": sequence,
            "status": status,
            "version": version,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        amount_remaining = d.pop("amountRemaining")

        def _parse_completed_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                completed_at_type_0 = datetime.datetime.fromisoformat(data)



                return completed_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        completed_at = _parse_completed_at(d.pop("completedAt"))


        expired = d.pop("expired")

        headline = d.pop("headline")

        id = d.pop("id")

        message = d.pop("message")

        phase = check_live_status_phase(d.pop("phase"))




        sequence = d.pop("sequence")

        status = check_live_status_status(d.pop("status"))




        version = d.pop("version")

        live_status = cls(
            amount_remaining=amount_remaining,
            completed_at=completed_at,
            expired=expired,
            headline=headline,
            id=id,
            message=message,
            phase=phase,
            sequence=sequence,
            status=status,
            version=version,
        )

        return live_status

