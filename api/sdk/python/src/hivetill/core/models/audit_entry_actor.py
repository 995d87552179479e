from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast






T = TypeVar("T", bound="AuditEntryActor")



@_attrs_define
class AuditEntryActor:
    """ Who did it.

        Attributes:
            ip (None | str): The IP address of the request.
            key_id (None | str): The key.
            merchant_id (None | str): The merchant whose key was used.
     """

    ip: None | str
    key_id: None | str
    merchant_id: None | str





    def to_dict(self) -> dict[str, Any]:
        ip: None | str
        ip = self.ip

        key_id: None | str
        key_id = self.key_id

        merchant_id: None | str
        merchant_id = self.merchant_id


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "ip": ip,
            "keyId": key_id,
            "merchantId": merchant_id,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        def _parse_ip(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        ip = _parse_ip(d.pop("ip"))


        def _parse_key_id(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        key_id = _parse_key_id(d.pop("keyId"))


        def _parse_merchant_id(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        merchant_id = _parse_merchant_id(d.pop("merchantId"))


        audit_entry_actor = cls(
            ip=ip,
            key_id=key_id,
            merchant_id=merchant_id,
        )

        return audit_entry_actor

