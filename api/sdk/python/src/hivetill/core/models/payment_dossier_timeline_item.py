from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime






T = TypeVar("T", bound="PaymentDossierTimelineItem")



@_attrs_define
class PaymentDossierTimelineItem:
    """ An entry of a timeline.

        Attributes:
            at (datetime.datetime): When it happened.
            event (str): What happened.
     """

    at: datetime.datetime
    event: str





    def to_dict(self) -> dict[str, Any]:
        at = self.at.isoformat()

        event = self.event


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "at": at,
            "event": event,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        at = datetime.datetime.fromisoformat(d.pop("at"))




        event = d.pop("event")

        payment_dossier_timeline_item = cls(
            at=at,
            event=event,
        )

        return payment_dossier_timeline_item

