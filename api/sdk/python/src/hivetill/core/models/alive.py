from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.alive_status import AliveStatus
from ..models.alive_status import check_alive_status
from typing import cast






T = TypeVar("T", bound="Alive")



@_attrs_define
class Alive:
    """ 
        Attributes:
            status (AliveStatus): The process runs.
     """

    status: AliveStatus





    def to_dict(self) -> dict[str, Any]:
        status: str = self.status


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "status": status,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        status = check_alive_status(d.pop("status"))




        alive = cls(
            status=status,
        )

        return alive

