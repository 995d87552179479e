from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
  from ..models.volume_days_item import VolumeDaysItem





T = TypeVar("T", bound="Volume")



@_attrs_define
class Volume:
    """ 
        Attributes:
            days (list[VolumeDaysItem]): One entry for each UTC day, oldest first.
            median_ms_to_pay (int | None): Milliseconds from creation to completion, of half of the payments at most. Exact
                to one part in 64.
     """

    days: list[VolumeDaysItem]
    median_ms_to_pay: int | None





    def to_dict(self) -> dict[str, Any]:
        from ..models.volume_days_item import VolumeDaysItem # noqa: PLC0415
        days = []
        for days_item_data in self.days:
            days_item = days_item_data.to_dict()
            days.append(days_item)



        median_ms_to_pay: int | None
        median_ms_to_pay = self.median_ms_to_pay


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "days": days,
            "medianMsToPay": median_ms_to_pay,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.volume_days_item import VolumeDaysItem # noqa: PLC0415
        d = dict(src_dict)
        days = []
        _days = d.pop("days")
        for days_item_data in (_days):
            days_item = VolumeDaysItem.from_dict(days_item_data)



            days.append(days_item)


        def _parse_median_ms_to_pay(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        median_ms_to_pay = _parse_median_ms_to_pay(d.pop("medianMsToPay"))


        volume = cls(
            days=days,
            median_ms_to_pay=median_ms_to_pay,
        )

        return volume

