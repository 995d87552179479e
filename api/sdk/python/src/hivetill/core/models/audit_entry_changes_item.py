from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast






T = TypeVar("T", bound="AuditEntryChangesItem")



@_attrs_define
class AuditEntryChangesItem:
    """ 
        Attributes:
            after (None | str): Its value after.
            before (None | str): Its value before.
            field (str): The field.
     """

    after: None | str
    before: None | str
    field: str





    def to_dict(self) -> dict[str, Any]:
        after: None | str
        after = self.after

        before: None | str
        before = self.before

        field = self.field


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "after": after,
            "before": before,
            "field": field,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        def _parse_after(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        after = _parse_after(d.pop("after"))


        def _parse_before(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        before = _parse_before(d.pop("before"))


        field = d.pop("field")

        audit_entry_changes_item = cls(
            after=after,
            before=before,
            field=field,
        )

        return audit_entry_changes_item

