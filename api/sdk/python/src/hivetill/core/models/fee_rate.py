from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset







T = TypeVar("T", bound="FeeRate")



@_attrs_define
class FeeRate:
    """ 
        Attributes:
            fee_percent (float): The fee in percent of payments that are created now.
     """

    fee_percent: float





    def to_dict(self) -> dict[str, Any]:
        fee_percent = self.fee_percent


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "feePercent": fee_percent,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        fee_percent = d.pop("feePercent")

        fee_rate = cls(
            fee_percent=fee_percent,
        )

        return fee_rate

