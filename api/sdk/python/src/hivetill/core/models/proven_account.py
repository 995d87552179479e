from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
  from ..models.merchant import Merchant





T = TypeVar("T", bound="ProvenAccount")



@_attrs_define
class ProvenAccount:
    """ 
        Attributes:
            complete (bool): Whether the signatures are sufficient; otherwise more are needed.
            merchant (Merchant):
            signatures (int): How many keys have signed so far.
     """

    complete: bool
    merchant: Merchant
    signatures: int





    def to_dict(self) -> dict[str, Any]:
        from ..models.merchant import Merchant # noqa: PLC0415
        complete = self.complete

        merchant = self.merchant.to_dict()

        signatures = self.signatures


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "complete": complete,
            "merchant": merchant,
            "signatures": signatures,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.merchant import Merchant # noqa: PLC0415
        d = dict(src_dict)
        complete = d.pop("complete")

        merchant = Merchant.from_dict(d.pop("merchant"))




        signatures = d.pop("signatures")

        proven_account = cls(
            complete=complete,
            merchant=merchant,
            signatures=signatures,
        )

        return proven_account

