from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime

if TYPE_CHECKING:
  from ..models.fee_tier import FeeTier





T = TypeVar("T", bound="FeeTiers")



@_attrs_define
class FeeTiers:
    """ 
        Attributes:
            tiers (list[FeeTier]): The tiers, by volume, without gaps.
            updated_at (datetime.datetime | None): When the tiers were last changed.
            version (int): The version of the tiers. It rises with every change.
     """

    tiers: list[FeeTier]
    updated_at: datetime.datetime | None
    version: int





    def to_dict(self) -> dict[str, Any]:
        from ..models.fee_tier import FeeTier # noqa: PLC0415
        tiers = []
        for tiers_item_data in self.tiers:
            tiers_item = tiers_item_data.to_dict()
            tiers.append(tiers_item)



        updated_at: None | str
        if isinstance(self.updated_at, datetime.datetime):
            updated_at = self.updated_at.isoformat()
        else:
            updated_at = self.updated_at

        version = self.version


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "tiers": tiers,
            "updatedAt": updated_at,
            "version": version,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.fee_tier import FeeTier # noqa: PLC0415
        d = dict(src_dict)
        tiers = []
        _tiers = d.pop("tiers")
        for tiers_item_data in (_tiers):
            tiers_item = FeeTier.from_dict(tiers_item_data)



            tiers.append(tiers_item)


        def _parse_updated_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                updated_at_type_0 = datetime.datetime.fromisoformat(data)



                return updated_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        updated_at = _parse_updated_at(d.pop("updatedAt"))


        version = d.pop("version")

        fee_tiers = cls(
            tiers=tiers,
            updated_at=updated_at,
            version=version,
        )

        return fee_tiers

