from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast






T = TypeVar("T", bound="AccountProof")



@_attrs_define
class AccountProof:
    """ 
        Attributes:
            nonce (str): The nonce of the challenge.
            signatures (list[str]): Signatures over the digest, 130 hex characters each (31 + recovery id, r, s), by keys of
                the account's active authority.
     """

    nonce: str
    signatures: list[str]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)





    def to_dict(self) -> dict[str, Any]:
        nonce = self.nonce

        signatures = self.signatures




        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({
            "nonce": nonce,
            "signatures": signatures,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        nonce = d.pop("nonce")

        signatures = cast(list[str], d.pop("signatures"))


        account_proof = cls(
            nonce=nonce,
            signatures=signatures,
        )


        account_proof.additional_properties = d
        return account_proof

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
