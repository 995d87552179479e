from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime






T = TypeVar("T", bound="VolumeDaysItem")



@_attrs_define
class VolumeDaysItem:
    """ 
        Attributes:
            completed (int): Payments completed.
            day (datetime.date): The day in UTC.
            ended (int): Payments that ended otherwise.
            hbd (str): The sum of completed payments in HBD, in the smallest unit.
            hive (str): The sum of completed payments in HIVE, in the smallest unit.
            opened (int): Payments created.
            usd_cents (int): The sum of both in US cents, at the rates of each payment.
     """

    completed: int
    day: datetime.date
    ended: int
    hbd: str
    hive: str
    opened: int
    usd_cents: int





    def to_dict(self) -> dict[str, Any]:
        completed = self.completed

        day = self.day.isoformat()

        ended = self.ended

        hbd = self.hbd

        hive = self.hive

        opened = self.opened

        usd_cents = self.usd_cents


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "completed": completed,
            "day": day,
            "ended": ended,
            "hbd": hbd,
            "hive": hive,
            "opened": opened,
            "usdCents": usd_cents,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        completed = d.pop("completed")

        day = datetime.date.fromisoformat(d.pop("day"))




        ended = d.pop("ended")

        hbd = d.pop("hbd")

        hive = d.pop("hive")

        opened = d.pop("opened")

        usd_cents = d.pop("usdCents")

        volume_days_item = cls(
            completed=completed,
            day=day,
            ended=ended,
            hbd=hbd,
            hive=hive,
            opened=opened,
            usd_cents=usd_cents,
        )

        return volume_days_item

