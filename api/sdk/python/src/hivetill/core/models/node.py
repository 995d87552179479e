from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.node_condition import check_node_condition
from ..models.node_condition import NodeCondition
from typing import cast
import datetime






T = TypeVar("T", bound="Node")



@_attrs_define
class Node:
    """ 
        Attributes:
            answered_at (datetime.datetime | None): When it last responded.
            condition (NodeCondition): The health of the node.
            failures (int): How many requests failed in a row.
            head_block (int | None): The newest block that the node reported.
            name (str): The node.
            rests_until (datetime.datetime | None): The time until which it is not used.
     """

    answered_at: datetime.datetime | None
    condition: NodeCondition
    failures: int
    head_block: int | None
    name: str
    rests_until: datetime.datetime | None





    def to_dict(self) -> dict[str, Any]:
        answered_at: None | str
        if isinstance(self.answered_at, datetime.datetime):
            answered_at = self.answered_at.isoformat()
        else:
            answered_at = self.answered_at

        condition: str = self.condition

        failures = self.failures

        head_block: int | None
        head_block = self.head_block

        name = self.name

        rests_until: None | str
        if isinstance(self.rests_until, datetime.datetime):
            rests_until = self.rests_until.isoformat()
        else:
            rests_until = self.rests_until


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "answeredAt": answered_at,
            "condition": condition,
            "failures": failures,
            "headBlock": head_block,
            "name": name,
            "restsUntil": rests_until,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        def _parse_answered_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                answered_at_type_0 = datetime.datetime.fromisoformat(data)



                return answered_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        answered_at = _parse_answered_at(d.pop("answeredAt"))


        condition = check_node_condition(d.pop("condition"))




        failures = d.pop("failures")

        def _parse_head_block(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        head_block = _parse_head_block(d.pop("headBlock"))


        name = d.pop("name")

        def _parse_rests_until(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                rests_until_type_0 = datetime.datetime.fromisoformat(data)



                return rests_until_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        rests_until = _parse_rests_until(d.pop("restsUntil"))


        node = cls(
            answered_at=answered_at,
            condition=condition,
            failures=failures,
            head_block=head_block,
            name=name,
            rests_until=rests_until,
        )

        return node

