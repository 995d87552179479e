from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.supported_kinds_item_network import check_supported_kinds_item_network
from ..models.supported_kinds_item_network import SupportedKindsItemNetwork
from ..models.supported_kinds_item_scheme import check_supported_kinds_item_scheme
from ..models.supported_kinds_item_scheme import SupportedKindsItemScheme
from ..models.supported_kinds_item_x402_version import check_supported_kinds_item_x402_version
from ..models.supported_kinds_item_x402_version import SupportedKindsItemX402Version
from typing import cast

if TYPE_CHECKING:
  from ..models.supported_kinds_item_extra import SupportedKindsItemExtra





T = TypeVar("T", bound="SupportedKindsItem")



@_attrs_define
class SupportedKindsItem:
    """ 
        Attributes:
            extra (SupportedKindsItemExtra): Reserved; empty.
            network (SupportedKindsItemNetwork): The network.
            scheme (SupportedKindsItemScheme): The scheme of the payment.
            x_402_version (SupportedKindsItemX402Version): The version of x402.
     """

    extra: SupportedKindsItemExtra
    network: SupportedKindsItemNetwork
    scheme: SupportedKindsItemScheme
    x_402_version: SupportedKindsItemX402Version





    def to_dict(self) -> dict[str, Any]:
        from ..models.supported_kinds_item_extra import SupportedKindsItemExtra # noqa: PLC0415
        extra = self.extra.to_dict()

        network: str = self.network

        scheme: str = self.scheme

        x_402_version: int = self.x_402_version


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "extra": extra,
            "network": network,
            "scheme": scheme,
            "x402Version": x_402_version,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.supported_kinds_item_extra import SupportedKindsItemExtra # noqa: PLC0415
        d = dict(src_dict)
        extra = SupportedKindsItemExtra.from_dict(d.pop("extra"))




        network = check_supported_kinds_item_network(d.pop("network"))




        scheme = check_supported_kinds_item_scheme(d.pop("scheme"))




        x_402_version = check_supported_kinds_item_x402_version(d.pop("x402Version"))




        supported_kinds_item = cls(
            extra=extra,
            network=network,
            scheme=scheme,
            x_402_version=x_402_version,
        )

        return supported_kinds_item

