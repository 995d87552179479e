from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime






T = TypeVar("T", bound="PendingAccount")



@_attrs_define
class PendingAccount:
    """ 
        Attributes:
            current_proven (bool): Whether the current account has signed.
            effective_at (datetime.datetime): The earliest time it takes effect.
            hive_account (str): The account that will receive the payments.
            new_proven (bool): Whether the new account has signed.
            requested_at (datetime.datetime): When the change was requested.
     """

    current_proven: bool
    effective_at: datetime.datetime
    hive_account: str
    new_proven: bool
    requested_at: datetime.datetime





    def to_dict(self) -> dict[str, Any]:
        current_proven = self.current_proven

        effective_at = self.effective_at.isoformat()

        hive_account = self.hive_account

        new_proven = self.new_proven

        requested_at = self.requested_at.isoformat()


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "currentProven": current_proven,
            "effectiveAt": effective_at,
            "hiveAccount": hive_account,
            "newProven": new_proven,
            "requestedAt": requested_at,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        current_proven = d.pop("currentProven")

        effective_at = datetime.datetime.fromisoformat(d.pop("effectiveAt"))




        hive_account = d.pop("hiveAccount")

        new_proven = d.pop("newProven")

        requested_at = datetime.datetime.fromisoformat(d.pop("requestedAt"))




        pending_account = cls(
            current_proven=current_proven,
            effective_at=effective_at,
            hive_account=hive_account,
            new_proven=new_proven,
            requested_at=requested_at,
        )

        return pending_account

