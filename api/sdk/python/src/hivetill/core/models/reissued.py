from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
  from ..models.merchant import Merchant





T = TypeVar("T", bound="Reissued")



@_attrs_define
class Reissued:
    """ 
        Attributes:
            api_key (str): The API key. It is shown once.
            merchant (Merchant):
     """

    api_key: str
    merchant: Merchant





    def to_dict(self) -> dict[str, Any]:
        from ..models.merchant import Merchant # noqa: PLC0415
        api_key = self.api_key

        merchant = self.merchant.to_dict()


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "apiKey": api_key,
            "merchant": merchant,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.merchant import Merchant # noqa: PLC0415
        d = dict(src_dict)
        api_key = d.pop("apiKey")

        merchant = Merchant.from_dict(d.pop("merchant"))




        reissued = cls(
            api_key=api_key,
            merchant=merchant,
        )

        return reissued

