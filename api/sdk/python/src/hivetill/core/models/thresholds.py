from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset







T = TypeVar("T", bound="Thresholds")



@_attrs_define
class Thresholds:
    """ 
        Attributes:
            daily_cents (int): The limit of 24 hours in US cents; 0 is no limit.
            monthly_cents (int): The limit of 30 days in US cents; 0 is no limit.
            single_cents (int): The limit of one payment in US cents; 0 is no limit.
     """

    daily_cents: int
    monthly_cents: int
    single_cents: int





    def to_dict(self) -> dict[str, Any]:
        daily_cents = self.daily_cents

        monthly_cents = self.monthly_cents

        single_cents = self.single_cents


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "dailyCents": daily_cents,
            "monthlyCents": monthly_cents,
            "singleCents": single_cents,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        daily_cents = d.pop("dailyCents")

        monthly_cents = d.pop("monthlyCents")

        single_cents = d.pop("singleCents")

        thresholds = cls(
            daily_cents=daily_cents,
            monthly_cents=monthly_cents,
            single_cents=single_cents,
        )

        return thresholds

