from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset







T = TypeVar("T", bound="Replayed")



@_attrs_define
class Replayed:
    """ 
        Attributes:
            has_more (bool): Whether there are more items after this page.
            replayed (int): The number of deliveries that are sent again.
     """

    has_more: bool
    replayed: int





    def to_dict(self) -> dict[str, Any]:
        has_more = self.has_more

        replayed = self.replayed


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "hasMore": has_more,
            "replayed": replayed,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        has_more = d.pop("hasMore")

        replayed = d.pop("replayed")

        replayed = cls(
            has_more=has_more,
            replayed=replayed,
        )

        return replayed

