from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast






T = TypeVar("T", bound="AccountChallengeTransfer")



@_attrs_define
class AccountChallengeTransfer:
    """ A transfer of the account to itself, as an alternative to signatures.

        Attributes:
            hivesigner_url (str): The same by HiveSigner.
            memo (str): The memo of that transfer.
            operation (list[Any]): The operation to sign.
            uri (str): Opens a wallet with the transfer filled in.
     """

    hivesigner_url: str
    memo: str
    operation: list[Any]
    uri: str





    def to_dict(self) -> dict[str, Any]:
        hivesigner_url = self.hivesigner_url

        memo = self.memo

        operation = self.operation



        uri = self.uri


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "hivesignerUrl": hivesigner_url,
            "memo": memo,
            "operation": operation,
            "uri": uri,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        hivesigner_url = d.pop("hivesignerUrl")

        memo = d.pop("memo")

        operation = cast(list[Any], d.pop("operation"))


        uri = d.pop("uri")

        account_challenge_transfer = cls(
            hivesigner_url=hivesigner_url,
            memo=memo,
            operation=operation,
            uri=uri,
        )

        return account_challenge_transfer

