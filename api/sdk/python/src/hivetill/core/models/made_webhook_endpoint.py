from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
  from ..models.webhook_endpoint import WebhookEndpoint





T = TypeVar("T", bound="MadeWebhookEndpoint")



@_attrs_define
class MadeWebhookEndpoint:
    """ 
        Attributes:
            endpoint (WebhookEndpoint):
            webhook_secret (str): The secret that signs webhooks. It is shown once.
     """

    endpoint: WebhookEndpoint
    webhook_secret: str





    def to_dict(self) -> dict[str, Any]:
        from ..models.webhook_endpoint import WebhookEndpoint # noqa: PLC0415
        endpoint = self.endpoint.to_dict()

        webhook_secret = self.webhook_secret


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "endpoint": endpoint,
            "webhookSecret": webhook_secret,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.webhook_endpoint import WebhookEndpoint # noqa: PLC0415
        d = dict(src_dict)
        endpoint = WebhookEndpoint.from_dict(d.pop("endpoint"))




        webhook_secret = d.pop("webhookSecret")

        made_webhook_endpoint = cls(
            endpoint=endpoint,
            webhook_secret=webhook_secret,
        )

        return made_webhook_endpoint

