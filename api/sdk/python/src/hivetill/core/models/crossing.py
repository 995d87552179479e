from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.crossing_window import check_crossing_window
from ..models.crossing_window import CrossingWindow
from typing import cast
import datetime






T = TypeVar("T", bound="Crossing")



@_attrs_define
class Crossing:
    """ 
        Attributes:
            at (datetime.datetime): When it was exceeded.
            limit_cents (int): The limit, in US cents.
            usd_cents (int): The sum that exceeded it, in US cents.
            window (CrossingWindow): The limit that was exceeded.
     """

    at: datetime.datetime
    limit_cents: int
    usd_cents: int
    window: CrossingWindow





    def to_dict(self) -> dict[str, Any]:
        at = self.at.isoformat()

        limit_cents = self.limit_cents

        usd_cents = self.usd_cents

        window: str = self.window


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "at": at,
            "limitCents": limit_cents,
            "usdCents": usd_cents,
            "window": window,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        at = datetime.datetime.fromisoformat(d.pop("at"))




        limit_cents = d.pop("limitCents")

        usd_cents = d.pop("usdCents")

        window = check_crossing_window(d.pop("window"))




        crossing = cls(
            at=at,
            limit_cents=limit_cents,
            usd_cents=usd_cents,
            window=window,
        )

        return crossing

