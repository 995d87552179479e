from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.health_network import check_health_network
from ..models.health_network import HealthNetwork
from ..models.health_status import check_health_status
from ..models.health_status import HealthStatus
from typing import cast






T = TypeVar("T", bound="Health")



@_attrs_define
class Health:
    """ 
        Attributes:
            commit (str): The commit it was built from.
            livemode (bool): Whether the payment uses real money: true only on the main network.
            network (HealthNetwork): The Hive network that the gateway follows.
            status (HealthStatus): `degraded` while a part does not work; payments can still be created.
            version (str): The version of the gateway.
     """

    commit: str
    livemode: bool
    network: HealthNetwork
    status: HealthStatus
    version: str





    def to_dict(self) -> dict[str, Any]:
        commit = self.commit

        livemode = self.livemode

        network: str = self.network

        status: str = self.status

        version = self.version


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "commit": commit,
            "livemode": livemode,
            "network": network,
            "status": status,
            "version": version,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        commit = d.pop("commit")

        livemode = d.pop("livemode")

        network = check_health_network(d.pop("network"))




        status = check_health_status(d.pop("status"))




        version = d.pop("version")

        health = cls(
            commit=commit,
            livemode=livemode,
            network=network,
            status=status,
            version=version,
        )

        return health

