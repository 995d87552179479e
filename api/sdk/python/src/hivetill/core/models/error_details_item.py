from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset







T = TypeVar("T", bound="ErrorDetailsItem")



@_attrs_define
class ErrorDetailsItem:
    """ 
        Attributes:
            field (str): The field, by its JSON path or the name of the parameter.
            message (str): The problem, and the expected form.
     """

    field: str
    message: str





    def to_dict(self) -> dict[str, Any]:
        field = self.field

        message = self.message


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "field": field,
            "message": message,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        field = d.pop("field")

        message = d.pop("message")

        error_details_item = cls(
            field=field,
            message=message,
        )

        return error_details_item

