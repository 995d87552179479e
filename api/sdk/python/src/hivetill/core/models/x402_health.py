from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.x402_health_network import check_x402_health_network
from ..models.x402_health_network import X402HealthNetwork
from ..models.x402_health_status import check_x402_health_status
from ..models.x402_health_status import X402HealthStatus
from typing import cast






T = TypeVar("T", bound="X402Health")



@_attrs_define
class X402Health:
    """ 
        Attributes:
            head_block (int): The newest block.
            network (X402HealthNetwork): The network.
            status (X402HealthStatus): Payments can be verified and settled.
     """

    head_block: int
    network: X402HealthNetwork
    status: X402HealthStatus





    def to_dict(self) -> dict[str, Any]:
        head_block = self.head_block

        network: str = self.network

        status: str = self.status


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "headBlock": head_block,
            "network": network,
            "status": status,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        head_block = d.pop("headBlock")

        network = check_x402_health_network(d.pop("network"))




        status = check_x402_health_status(d.pop("status"))




        x402_health = cls(
            head_block=head_block,
            network=network,
            status=status,
        )

        return x402_health

