from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.unmatched_event_type import check_unmatched_event_type
from ..models.unmatched_event_type import UnmatchedEventType
from typing import cast
import datetime

if TYPE_CHECKING:
  from ..models.unmatched_event_data import UnmatchedEventData





T = TypeVar("T", bound="UnmatchedEvent")



@_attrs_define
class UnmatchedEvent:
    """ 
        Attributes:
            created_at (datetime.datetime): When it happened.
            data (UnmatchedEventData):
            id (str): The id of the event. It is the same in every repetition: use it to ignore duplicates.
            timestamp (datetime.datetime): Alias of `createdAt`.
            type_ (UnmatchedEventType): What happened.
     """

    created_at: datetime.datetime
    data: UnmatchedEventData
    id: str
    timestamp: datetime.datetime
    type_: UnmatchedEventType





    def to_dict(self) -> dict[str, Any]:
        from ..models.unmatched_event_data import UnmatchedEventData # noqa: PLC0415
        created_at = self.created_at.isoformat()

        data = self.data.to_dict()

        id = self.id

        timestamp = self.timestamp.isoformat()

        type_: str = self.type_


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "createdAt": created_at,
            "data": data,
            "id": id,
            "timestamp": timestamp,
            "type": type_,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.unmatched_event_data import UnmatchedEventData # noqa: PLC0415
        d = dict(src_dict)
        created_at = datetime.datetime.fromisoformat(d.pop("createdAt"))




        data = UnmatchedEventData.from_dict(d.pop("data"))




        id = d.pop("id")

        timestamp = datetime.datetime.fromisoformat(d.pop("timestamp"))




        type_ = check_unmatched_event_type(d.pop("type"))




        unmatched_event = cls(
            created_at=created_at,
            data=data,
            id=id,
            timestamp=timestamp,
            type_=type_,
        )

        return unmatched_event

