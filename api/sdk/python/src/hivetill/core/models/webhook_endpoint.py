from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.webhook_endpoint_events_item import check_webhook_endpoint_events_item
from ..models.webhook_endpoint_events_item import WebhookEndpointEventsItem
from ..models.webhook_endpoint_status import check_webhook_endpoint_status
from ..models.webhook_endpoint_status import WebhookEndpointStatus
from typing import cast
import datetime






T = TypeVar("T", bound="WebhookEndpoint")



@_attrs_define
class WebhookEndpoint:
    """ 
        Attributes:
            breaker_open (bool): Whether the endpoint gets one delivery at a time, because it does not respond.
            created_at (datetime.datetime): When it was created.
            description (str): What it is for; empty for the default endpoint.
            disabled_at (datetime.datetime | None): When it was disabled.
            disabled_reason (None | str): Why it was disabled: it responded with 410 (`gone`), every attempt failed for five
                days (`failing`), or the merchant disabled it (`merchant`).
            enabled (bool): Whether events are sent.
            events (list[WebhookEndpointEventsItem]): The types of events that it receives.
            failed_attempts (int): How many attempts have failed since then.
            failing_since (datetime.datetime | None): The time since which every attempt has failed.
            id (str): The id of the endpoint.
            last_failure_at (datetime.datetime | None): When an attempt last failed.
            last_success_at (datetime.datetime | None): When an event was last accepted.
            merchant_id (str): The id of the merchant.
            status (WebhookEndpointStatus): The health of the endpoint.
            url (None | str): Where events are sent; `null` when none is set.
            warning (None | str): A warning before it is disabled.
     """

    breaker_open: bool
    created_at: datetime.datetime
    description: str
    disabled_at: datetime.datetime | None
    disabled_reason: None | str
    enabled: bool
    events: list[WebhookEndpointEventsItem]
    failed_attempts: int
    failing_since: datetime.datetime | None
    id: str
    last_failure_at: datetime.datetime | None
    last_success_at: datetime.datetime | None
    merchant_id: str
    status: WebhookEndpointStatus
    url: None | str
    warning: None | str





    def to_dict(self) -> dict[str, Any]:
        breaker_open = self.breaker_open

        created_at = self.created_at.isoformat()

        description = self.description

        disabled_at: None | str
        if isinstance(self.disabled_at, datetime.datetime):
            disabled_at = self.disabled_at.isoformat()
        else:
            disabled_at = self.disabled_at

        disabled_reason: None | str
        disabled_reason = self.disabled_reason

        enabled = self.enabled

        events = []
        for events_item_data in self.events:
            events_item: str = events_item_data
            events.append(events_item)



        failed_attempts = self.failed_attempts

        failing_since: None | str
        if isinstance(self.failing_since, datetime.datetime):
            failing_since = self.failing_since.isoformat()
        else:
            failing_since = self.failing_since

        id = self.id

        last_failure_at: None | str
        if isinstance(self.last_failure_at, datetime.datetime):
            last_failure_at = self.last_failure_at.isoformat()
        else:
            last_failure_at = self.last_failure_at

        last_success_at: None | str
        if isinstance(self.last_success_at, datetime.datetime):
            last_success_at = self.last_success_at.isoformat()
        else:
            last_success_at = self.last_success_at

        merchant_id = self.merchant_id

        status: str = self.status

        url: None | str
        url = self.url

        warning: None | str
        warning = self.warning


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "breakerOpen": breaker_open,
            "createdAt": created_at,
            "description": description,
            "disabledAt": disabled_at,
            "disabledReason": disabled_reason,
            "enabled": enabled,
            "events": events,
            "failedAttempts": failed_attempts,
            "failingSince": failing_since,
            "id": id,
            "lastFailureAt": last_failure_at,
            "lastSuccessAt": last_success_at,
            "merchantId": merchant_id,
            "status": status,
            "url": url,
            "warning": warning,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        breaker_open = d.pop("breakerOpen")

        created_at = datetime.datetime.fromisoformat(d.pop("createdAt"))




        description = d.pop("description")

        def _parse_disabled_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                disabled_at_type_0 = datetime.datetime.fromisoformat(data)



                return disabled_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        disabled_at = _parse_disabled_at(d.pop("disabledAt"))


        def _parse_disabled_reason(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        disabled_reason = _parse_disabled_reason(d.pop("disabledReason"))


        enabled = d.pop("enabled")

        events = []
        _events = d.pop("events")
        for events_item_data in (_events):
            events_item = check_webhook_endpoint_events_item(events_item_data)



            events.append(events_item)


        failed_attempts = d.pop("failedAttempts")

        def _parse_failing_since(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                failing_since_type_0 = datetime.datetime.fromisoformat(data)



                return failing_since_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        failing_since = _parse_failing_since(d.pop("failingSince"))


        id = d.pop("id")

        def _parse_last_failure_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                last_failure_at_type_0 = datetime.datetime.fromisoformat(data)



                return last_failure_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        last_failure_at = _parse_last_failure_at(d.pop("lastFailureAt"))


        def _parse_last_success_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                last_success_at_type_0 = datetime.datetime.fromisoformat(data)



                return last_success_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        last_success_at = _parse_last_success_at(d.pop("lastSuccessAt"))


        merchant_id = d.pop("merchantId")

        status = check_webhook_endpoint_status(d.pop("status"))




        def _parse_url(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        url = _parse_url(d.pop("url"))


        def _parse_warning(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        warning = _parse_warning(d.pop("warning"))


        webhook_endpoint = cls(
            breaker_open=breaker_open,
            created_at=created_at,
            description=description,
            disabled_at=disabled_at,
            disabled_reason=disabled_reason,
            enabled=enabled,
            events=events,
            failed_attempts=failed_attempts,
            failing_since=failing_since,
            id=id,
            last_failure_at=last_failure_at,
            last_success_at=last_success_at,
            merchant_id=merchant_id,
            status=status,
            url=url,
            warning=warning,
        )

        return webhook_endpoint

