from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
from typing import Literal, cast

if TYPE_CHECKING:
  from ..models.description_components import DescriptionComponents
  from ..models.description_info import DescriptionInfo
  from ..models.description_paths import DescriptionPaths
  from ..models.description_servers_item import DescriptionServersItem
  from ..models.description_tags_item import DescriptionTagsItem
  from ..models.description_webhooks import DescriptionWebhooks





T = TypeVar("T", bound="Description")



@_attrs_define
class Description:
    """ 
        Attributes:
            components (DescriptionComponents): The schemas.
            info (DescriptionInfo): The title and version of the API.
            openapi (Literal['3.1.0']): The version of OpenAPI.
            paths (DescriptionPaths): The operations.
            servers (list[DescriptionServersItem]): The base URLs.
            tags (list[DescriptionTagsItem]): The groups of operations.
            webhooks (DescriptionWebhooks): The webhooks that are sent.
     """

    components: DescriptionComponents
    info: DescriptionInfo
    openapi: Literal['3.1.0']
    paths: DescriptionPaths
    servers: list[DescriptionServersItem]
    tags: list[DescriptionTagsItem]
    webhooks: DescriptionWebhooks





    def to_dict(self) -> dict[str, Any]:
        from ..models.description_components import DescriptionComponents # noqa: PLC0415
        from ..models.description_info import DescriptionInfo # noqa: PLC0415
        from ..models.description_paths import DescriptionPaths # noqa: PLC0415
        from ..models.description_servers_item import DescriptionServersItem # noqa: PLC0415
        from ..models.description_tags_item import DescriptionTagsItem # noqa: PLC0415
        from ..models.description_webhooks import DescriptionWebhooks # noqa: PLC0415
        components = self.components.to_dict()

        info = self.info.to_dict()

        openapi = self.openapi

        paths = self.paths.to_dict()

        servers = []
        for servers_item_data in self.servers:
            servers_item = servers_item_data.to_dict()
            servers.append(servers_item)



        tags = []
        for tags_item_data in self.tags:
            tags_item = tags_item_data.to_dict()
            tags.append(tags_item)



        webhooks = self.webhooks.to_dict()


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "components": components,
            "info": info,
            "openapi": openapi,
            "paths": paths,
            "servers": servers,
            "tags": tags,
            "webhooks": webhooks,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.description_components import DescriptionComponents # noqa: PLC0415
        from ..models.description_info import DescriptionInfo # noqa: PLC0415
        from ..models.description_paths import DescriptionPaths # noqa: PLC0415
        from ..models.description_servers_item import DescriptionServersItem # noqa: PLC0415
        from ..models.description_tags_item import DescriptionTagsItem # noqa: PLC0415
        from ..models.description_webhooks import DescriptionWebhooks # noqa: PLC0415
        d = dict(src_dict)
        components = DescriptionComponents.from_dict(d.pop("components"))




        info = DescriptionInfo.from_dict(d.pop("info"))




        openapi = cast(Literal['3.1.0'] , d.pop("openapi"))
        if openapi != '3.1.0':
            raise ValueError(f"openapi must match const '3.1.0', got '{openapi}'")

        paths = DescriptionPaths.from_dict(d.pop("paths"))




        servers = []
        _servers = d.pop("servers")
        for servers_item_data in (_servers):
            servers_item = DescriptionServersItem.from_dict(servers_item_data)



            servers.append(servers_item)


        tags = []
        _tags = d.pop("tags")
        for tags_item_data in (_tags):
            tags_item = DescriptionTagsItem.from_dict(tags_item_data)



            tags.append(tags_item)


        webhooks = DescriptionWebhooks.from_dict(d.pop("webhooks"))




        description = cls(
            components=components,
            info=info,
            openapi=openapi,
            paths=paths,
            servers=servers,
            tags=tags,
            webhooks=webhooks,
        )

        return description

