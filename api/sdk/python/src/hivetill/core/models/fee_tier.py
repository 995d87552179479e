from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast






T = TypeVar("T", bound="FeeTier")



@_attrs_define
class FeeTier:
    """ 
        Attributes:
            max_volume_cents (int | None): The volume up to which it applies; `null` for no bound.
            min_volume_cents (int): The monthly volume from which the tier applies, in US cents.
            percent_fee (float): The fee in percent of the volume.
     """

    max_volume_cents: int | None
    min_volume_cents: int
    percent_fee: float





    def to_dict(self) -> dict[str, Any]:
        max_volume_cents: int | None
        max_volume_cents = self.max_volume_cents

        min_volume_cents = self.min_volume_cents

        percent_fee = self.percent_fee


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "maxVolumeCents": max_volume_cents,
            "minVolumeCents": min_volume_cents,
            "percentFee": percent_fee,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        def _parse_max_volume_cents(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        max_volume_cents = _parse_max_volume_cents(d.pop("maxVolumeCents"))


        min_volume_cents = d.pop("minVolumeCents")

        percent_fee = d.pop("percentFee")

        fee_tier = cls(
            max_volume_cents=max_volume_cents,
            min_volume_cents=min_volume_cents,
            percent_fee=percent_fee,
        )

        return fee_tier

