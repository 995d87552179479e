from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime






T = TypeVar("T", bound="ComplianceStatusClearancesItem")



@_attrs_define
class ComplianceStatusClearancesItem:
    """ 
        Attributes:
            at (datetime.datetime): When.
            by (str): The API key that ended it.
            reason (str): Why.
     """

    at: datetime.datetime
    by: str
    reason: str





    def to_dict(self) -> dict[str, Any]:
        at = self.at.isoformat()

        by = self.by

        reason = self.reason


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "at": at,
            "by": by,
            "reason": reason,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        at = datetime.datetime.fromisoformat(d.pop("at"))




        by = d.pop("by")

        reason = d.pop("reason")

        compliance_status_clearances_item = cls(
            at=at,
            by=by,
            reason=reason,
        )

        return compliance_status_clearances_item

