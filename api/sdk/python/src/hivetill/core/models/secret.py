from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast
import datetime






T = TypeVar("T", bound="Secret")



@_attrs_define
class Secret:
    """ 
        Attributes:
            webhook_secret (str): The secret that signs webhooks. It is shown once.
            previous_valid_until (datetime.datetime | Unset): When the previous one stops being valid.
     """

    webhook_secret: str
    previous_valid_until: datetime.datetime | Unset = UNSET





    def to_dict(self) -> dict[str, Any]:
        webhook_secret = self.webhook_secret

        previous_valid_until: str | Unset = UNSET
        if not isinstance(self.previous_valid_until, Unset):
            previous_valid_until = self.previous_valid_until.isoformat()


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "webhookSecret": webhook_secret,
        })
        if previous_valid_until is not UNSET:
            field_dict["previousValidUntil"] = previous_valid_until

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        webhook_secret = d.pop("webhookSecret")

        _previous_valid_until = d.pop("previousValidUntil", UNSET)
        previous_valid_until: datetime.datetime | Unset
        if isinstance(_previous_valid_until,  Unset):
            previous_valid_until = UNSET
        else:
            previous_valid_until = datetime.datetime.fromisoformat(_previous_valid_until)




        secret = cls(
            webhook_secret=webhook_secret,
            previous_valid_until=previous_valid_until,
        )

        return secret

