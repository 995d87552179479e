from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.current_status_status import check_current_status_status
from ..models.current_status_status import CurrentStatusStatus
from typing import cast
import datetime






T = TypeVar("T", bound="CurrentStatus")



@_attrs_define
class CurrentStatus:
    """ 
        Attributes:
            completed_at (datetime.datetime | None): When the payment was completed; `null` before.
            id (str): The id of the payment.
            status (CurrentStatusStatus): The state. `completed`, `failed`, `user_cancelled` and `system_cancelled` are
                final and never change.
     """

    completed_at: datetime.datetime | None
    id: str
    status: CurrentStatusStatus





    def to_dict(self) -> dict[str, Any]:
        completed_at: None | str
        if isinstance(self.completed_at, datetime.datetime):
            completed_at = self.completed_at.isoformat()
        else:
            completed_at = self.completed_at

        id = self.id

        status: str = self.status


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "completedAt": completed_at,
            "id": id,
            "status": status,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
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


        id = d.pop("id")

        status = check_current_status_status(d.pop("status"))




        current_status = cls(
            completed_at=completed_at,
            id=id,
            status=status,
        )

        return current_status

