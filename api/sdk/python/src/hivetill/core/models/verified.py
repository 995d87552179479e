from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset






T = TypeVar("T", bound="Verified")



@_attrs_define
class Verified:
    """ 
        Attributes:
            is_valid (bool): Whether the payment would be accepted.
            invalid_message (str | Unset): The same, for people.
            invalid_reason (str | Unset): Why it would not: a reason from docs/reference/x402.md.
            payer (str | Unset): The account that pays. Present after its signatures were verified.
            transaction (str | Unset): The id of the transaction.
     """

    is_valid: bool
    invalid_message: str | Unset = UNSET
    invalid_reason: str | Unset = UNSET
    payer: str | Unset = UNSET
    transaction: str | Unset = UNSET





    def to_dict(self) -> dict[str, Any]:
        is_valid = self.is_valid

        invalid_message = self.invalid_message

        invalid_reason = self.invalid_reason

        payer = self.payer

        transaction = self.transaction


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "isValid": is_valid,
        })
        if invalid_message is not UNSET:
            field_dict["invalidMessage"] = invalid_message
        if invalid_reason is not UNSET:
            field_dict["invalidReason"] = invalid_reason
        if payer is not UNSET:
            field_dict["payer"] = payer
        if transaction is not UNSET:
            field_dict["transaction"] = transaction

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        is_valid = d.pop("isValid")

        invalid_message = d.pop("invalidMessage", UNSET)

        invalid_reason = d.pop("invalidReason", UNSET)

        payer = d.pop("payer", UNSET)

        transaction = d.pop("transaction", UNSET)

        verified = cls(
            is_valid=is_valid,
            invalid_message=invalid_message,
            invalid_reason=invalid_reason,
            payer=payer,
            transaction=transaction,
        )

        return verified

