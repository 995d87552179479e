from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.update_merchant_webhook_events_item import check_update_merchant_webhook_events_item
from ..models.update_merchant_webhook_events_item import UpdateMerchantWebhookEventsItem
from ..types import UNSET, Unset
from typing import cast






T = TypeVar("T", bound="UpdateMerchant")



@_attrs_define
class UpdateMerchant:
    """ 
        Attributes:
            hive_account (str | Unset): The Hive account that receives the payments. A proven merchant's change is pending
                until it is proven.
            icon_url (None | str | Unset): A logo by https; `null` removes it.
            name (str | Unset): The business name.
            restart_enabled (bool | Unset): Whether customers may start an expired payment again. A new merchant has
                `false`.
            support_url (None | str | Unset): Where customers find help; `null` removes it.
            webhook_events (list[UpdateMerchantWebhookEventsItem] | Unset): The types of events that are sent to
                `webhookUrl`.
            webhook_url (None | str | Unset): Where events are sent, by https; `null` removes it.
            x_402_enabled (bool | Unset): Whether programs may pay this merchant's payments by x402.
     """

    hive_account: str | Unset = UNSET
    icon_url: None | str | Unset = UNSET
    name: str | Unset = UNSET
    restart_enabled: bool | Unset = UNSET
    support_url: None | str | Unset = UNSET
    webhook_events: list[UpdateMerchantWebhookEventsItem] | Unset = UNSET
    webhook_url: None | str | Unset = UNSET
    x_402_enabled: bool | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)





    def to_dict(self) -> dict[str, Any]:
        hive_account = self.hive_account

        icon_url: None | str | Unset
        if isinstance(self.icon_url, Unset):
            icon_url = UNSET
        else:
            icon_url = self.icon_url

        name = self.name

        restart_enabled = self.restart_enabled

        support_url: None | str | Unset
        if isinstance(self.support_url, Unset):
            support_url = UNSET
        else:
            support_url = self.support_url

        webhook_events: list[str] | Unset = UNSET
        if not isinstance(self.webhook_events, Unset):
            webhook_events = []
            for webhook_events_item_data in self.webhook_events:
                webhook_events_item: str = webhook_events_item_data
                webhook_events.append(webhook_events_item)



        webhook_url: None | str | Unset
        if isinstance(self.webhook_url, Unset):
            webhook_url = UNSET
        else:
            webhook_url = self.webhook_url

        x_402_enabled = self.x_402_enabled


        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({
        })
        if hive_account is not UNSET:
            field_dict["hiveAccount"] = hive_account
        if icon_url is not UNSET:
            field_dict["iconUrl"] = icon_url
        if name is not UNSET:
            field_dict["name"] = name
        if restart_enabled is not UNSET:
            field_dict["restartEnabled"] = restart_enabled
        if support_url is not UNSET:
            field_dict["supportUrl"] = support_url
        if webhook_events is not UNSET:
            field_dict["webhookEvents"] = webhook_events
        if webhook_url is not UNSET:
            field_dict["webhookUrl"] = webhook_url
        if x_402_enabled is not UNSET:
            field_dict["x402Enabled"] = x_402_enabled

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        hive_account = d.pop("hiveAccount", UNSET)

        def _parse_icon_url(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        icon_url = _parse_icon_url(d.pop("iconUrl", UNSET))


        name = d.pop("name", UNSET)

        restart_enabled = d.pop("restartEnabled", UNSET)

        def _parse_support_url(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        support_url = _parse_support_url(d.pop("supportUrl", UNSET))


        _webhook_events = d.pop("webhookEvents", UNSET)
        webhook_events: list[UpdateMerchantWebhookEventsItem] | Unset = UNSET
        if _webhook_events is not UNSET:
            webhook_events = []
            for webhook_events_item_data in _webhook_events:
                webhook_events_item = check_update_merchant_webhook_events_item(webhook_events_item_data)



                webhook_events.append(webhook_events_item)


        def _parse_webhook_url(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        webhook_url = _parse_webhook_url(d.pop("webhookUrl", UNSET))


        x_402_enabled = d.pop("x402Enabled", UNSET)

        update_merchant = cls(
            hive_account=hive_account,
            icon_url=icon_url,
            name=name,
            restart_enabled=restart_enabled,
            support_url=support_url,
            webhook_events=webhook_events,
            webhook_url=webhook_url,
            x_402_enabled=x_402_enabled,
        )


        update_merchant.additional_properties = d
        return update_merchant

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
