from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.ready_node_condition import check_ready_node_condition
from ..models.ready_node_condition import ReadyNodeCondition
from typing import cast






T = TypeVar("T", bound="ReadyNode")



@_attrs_define
class ReadyNode:
    """ 
        Attributes:
            condition (ReadyNodeCondition): The health of the node.
            head_block (int | None): The newest block that the node reported.
            name (str): The node.
     """

    condition: ReadyNodeCondition
    head_block: int | None
    name: str





    def to_dict(self) -> dict[str, Any]:
        condition: str = self.condition

        head_block: int | None
        head_block = self.head_block

        name = self.name


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "condition": condition,
            "headBlock": head_block,
            "name": name,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        condition = check_ready_node_condition(d.pop("condition"))




        def _parse_head_block(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        head_block = _parse_head_block(d.pop("headBlock"))


        name = d.pop("name")

        ready_node = cls(
            condition=condition,
            head_block=head_block,
            name=name,
        )

        return ready_node

