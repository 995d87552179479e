from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast
import datetime

if TYPE_CHECKING:
  from ..models.api_key import ApiKey





T = TypeVar("T", bound="MadeKey")



@_attrs_define
class MadeKey:
    """ 
        Attributes:
            api_key (str): The API key. It is shown once.
            key (ApiKey):
            previous_valid_until (datetime.datetime | Unset): When the previous one stops being valid.
     """

    api_key: str
    key: ApiKey
    previous_valid_until: datetime.datetime | Unset = UNSET





    def to_dict(self) -> dict[str, Any]:
        from ..models.api_key import ApiKey # noqa: PLC0415
        api_key = self.api_key

        key = self.key.to_dict()

        previous_valid_until: str | Unset = UNSET
        if not isinstance(self.previous_valid_until, Unset):
            previous_valid_until = self.previous_valid_until.isoformat()


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "apiKey": api_key,
            "key": key,
        })
        if previous_valid_until is not UNSET:
            field_dict["previousValidUntil"] = previous_valid_until

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.api_key import ApiKey # noqa: PLC0415
        d = dict(src_dict)
        api_key = d.pop("apiKey")

        key = ApiKey.from_dict(d.pop("key"))




        _previous_valid_until = d.pop("previousValidUntil", UNSET)
        previous_valid_until: datetime.datetime | Unset
        if isinstance(_previous_valid_until,  Unset):
            previous_valid_until = UNSET
        else:
            previous_valid_until = datetime.datetime.fromisoformat(_previous_valid_until)




        made_key = cls(
            api_key=api_key,
            key=key,
            previous_valid_until=previous_valid_until,
        )

        return made_key

