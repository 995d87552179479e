from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.api_key_scopes_item import ApiKeyScopesItem
from ..models.api_key_scopes_item import check_api_key_scopes_item
from typing import cast
import datetime






T = TypeVar("T", bound="ApiKey")



@_attrs_define
class ApiKey:
    """ 
        Attributes:
            created_at (datetime.datetime): When it was created.
            expires_at (datetime.datetime | None): When the key expires; `null` if it does not expire.
            id (str): The id of the key. It is not secret.
            last4 (str): The last four characters of the key.
            last_used_at (datetime.datetime | None): When the key was last used, to the minute.
            name (str): Your name for the key.
            prefix (str): How the key begins.
            scopes (list[ApiKeyScopesItem]): What the key may do.
     """

    created_at: datetime.datetime
    expires_at: datetime.datetime | None
    id: str
    last4: str
    last_used_at: datetime.datetime | None
    name: str
    prefix: str
    scopes: list[ApiKeyScopesItem]





    def to_dict(self) -> dict[str, Any]:
        created_at = self.created_at.isoformat()

        expires_at: None | str
        if isinstance(self.expires_at, datetime.datetime):
            expires_at = self.expires_at.isoformat()
        else:
            expires_at = self.expires_at

        id = self.id

        last4 = self.last4

        last_used_at: None | str
        if isinstance(self.last_used_at, datetime.datetime):
            last_used_at = self.last_used_at.isoformat()
        else:
            last_used_at = self.last_used_at

        name = self.name

        prefix = self.prefix

        scopes = []
        for scopes_item_data in self.scopes:
            scopes_item: str = scopes_item_data
            scopes.append(scopes_item)




        field_dict: dict[str, Any] = {}

        field_dict.update({
            "createdAt": created_at,
            "expiresAt": expires_at,
            "id": id,
            "last4": last4,
            "lastUsedAt": last_used_at,
            "name": name,
            "prefix": prefix,
            "scopes": scopes,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        created_at = datetime.datetime.fromisoformat(d.pop("createdAt"))




        def _parse_expires_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                expires_at_type_0 = datetime.datetime.fromisoformat(data)



                return expires_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        expires_at = _parse_expires_at(d.pop("expiresAt"))


        id = d.pop("id")

        last4 = d.pop("last4")

        def _parse_last_used_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                last_used_at_type_0 = datetime.datetime.fromisoformat(data)



                return last_used_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        last_used_at = _parse_last_used_at(d.pop("lastUsedAt"))


        name = d.pop("name")

        prefix = d.pop("prefix")

        scopes = []
        _scopes = d.pop("scopes")
        for scopes_item_data in (_scopes):
            scopes_item = check_api_key_scopes_item(scopes_item_data)



            scopes.append(scopes_item)


        api_key = cls(
            created_at=created_at,
            expires_at=expires_at,
            id=id,
            last4=last4,
            last_used_at=last_used_at,
            name=name,
            prefix=prefix,
            scopes=scopes,
        )

        return api_key

