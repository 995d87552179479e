from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.update_webhook_endpoint_events_item import check_update_webhook_endpoint_events_item
from ..models.update_webhook_endpoint_events_item import UpdateWebhookEndpointEventsItem
from ..types import UNSET, Unset
from typing import cast






T = TypeVar("T", bound="UpdateWebhookEndpoint")



@_attrs_define
class UpdateWebhookEndpoint:
    """ 
        Attributes:
            description (None | str | Unset): What it is for, at most 100 characters; `null` removes it.
            enabled (bool | Unset): Whether it receives events.
            events (list[UpdateWebhookEndpointEventsItem] | Unset): The types of events that it receives.
            url (str | Unset): Where events are sent.
     """

    description: None | str | Unset = UNSET
    enabled: bool | Unset = UNSET
    events: list[UpdateWebhookEndpointEventsItem] | Unset = UNSET
    url: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)





    def to_dict(self) -> dict[str, Any]:
        description: None | str | Unset
        if isinstance(self.description, Unset):
            description = UNSET
        else:
            description = self.description

        enabled = self.enabled

        events: list[str] | Unset = UNSET
        if not isinstance(self.events, Unset):
            events = []
            for events_item_data in self.events:
                events_item: str = events_item_data
                events.append(events_item)



        url = self.url


        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({
        })
        if description is not UNSET:
            field_dict["description"] = description
        if enabled is not UNSET:
            field_dict["enabled"] = enabled
        if events is not UNSET:
            field_dict["events"] = events
        if url is not UNSET:
            field_dict["url"] = url

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        def _parse_description(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        description = _parse_description(d.pop("description", UNSET))


        enabled = d.pop("enabled", UNSET)

        _events = d.pop("events", UNSET)
        events: list[UpdateWebhookEndpointEventsItem] | Unset = UNSET
        if _events is not UNSET:
            events = []
            for events_item_data in _events:
                events_item = check_update_webhook_endpoint_events_item(events_item_data)



                events.append(events_item)


        url = d.pop("url", UNSET)

        update_webhook_endpoint = cls(
            description=description,
            enabled=enabled,
            events=events,
            url=url,
        )


        update_webhook_endpoint.additional_properties = d
        return update_webhook_endpoint

    @property
    def additional_keys(self) -> list[str]:
        return list(self.additional_properties.keys())

    def __getitem__(self, key: str) -> Any:
        return self.additional_properties[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self.additional_properties[key] = value

    def __delitem__(self, key: str) -> None:
        del self.additional_properties[key]

    def __contains__(self, key: str) -> bool:
        return key in self.additional_properties
