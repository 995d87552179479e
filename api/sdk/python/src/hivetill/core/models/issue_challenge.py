from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast






T = TypeVar("T", bound="IssueChallenge")



@_attrs_define
class IssueChallenge:
    """ 
        Attributes:
            cancel (bool | Unset): Whether the challenge is for cancelling a pending change.
            hive_account (None | str | Unset): The account to prove; the merchant's own by default.
     """

    cancel: bool | Unset = UNSET
    hive_account: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)





    def to_dict(self) -> dict[str, Any]:
        cancel = self.cancel

        hive_account: None | str | Unset
        if isinstance(self.hive_account, Unset):
            hive_account = UNSET
        else:
            hive_account = self.hive_account


        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({
        })
        if cancel is not UNSET:
            field_dict["cancel"] = cancel
        if hive_account is not UNSET:
            field_dict["hiveAccount"] = hive_account

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        cancel = d.pop("cancel", UNSET)

        def _parse_hive_account(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        hive_account = _parse_hive_account(d.pop("hiveAccount", UNSET))


        issue_challenge = cls(
            cancel=cancel,
            hive_account=hive_account,
        )


        issue_challenge.additional_properties = d
        return issue_challenge

    @property
    def additional_keys(self) -> list[str]:
        return list(self.additional_properties.keys())

    def __getitem__(self, key: str) -> Any:
        return self.additional_properties[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self.additional_properties[key] = value

    def __delitem__(self, key: str) -> None:
        del self.additional_properties[key]

    def __contains__(self, key: str) -> bool:
        return key in self.additional_properties
