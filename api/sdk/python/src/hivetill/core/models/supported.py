from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
  from ..models.supported_kinds_item import SupportedKindsItem
  from ..models.supported_signers import SupportedSigners





T = TypeVar("T", bound="Supported")



@_attrs_define
class Supported:
    """ 
        Attributes:
            extensions (list[str]): The supported extensions of x402.
            kinds (list[SupportedKindsItem]): The kinds of payment that are accepted.
            signers (SupportedSigners): Reserved; empty.
     """

    extensions: list[str]
    kinds: list[SupportedKindsItem]
    signers: SupportedSigners





    def to_dict(self) -> dict[str, Any]:
        from ..models.supported_kinds_item import SupportedKindsItem # noqa: PLC0415
        from ..models.supported_signers import SupportedSigners # noqa: PLC0415
        extensions = self.extensions



        kinds = []
        for kinds_item_data in self.kinds:
            kinds_item = kinds_item_data.to_dict()
            kinds.append(kinds_item)



        signers = self.signers.to_dict()


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "extensions": extensions,
            "kinds": kinds,
            "signers": signers,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.supported_kinds_item import SupportedKindsItem # noqa: PLC0415
        from ..models.supported_signers import SupportedSigners # noqa: PLC0415
        d = dict(src_dict)
        extensions = cast(list[str], d.pop("extensions"))


        kinds = []
        _kinds = d.pop("kinds")
        for kinds_item_data in (_kinds):
            kinds_item = SupportedKindsItem.from_dict(kinds_item_data)



            kinds.append(kinds_item)


        signers = SupportedSigners.from_dict(d.pop("signers"))




        supported = cls(
            extensions=extensions,
            kinds=kinds,
            signers=signers,
        )

        return supported

