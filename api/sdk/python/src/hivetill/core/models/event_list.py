from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
  from ..models.account_event import AccountEvent
  from ..models.payment_event import PaymentEvent
  from ..models.sale_event import SaleEvent
  from ..models.unmatched_event import UnmatchedEvent





T = TypeVar("T", bound="EventList")



@_attrs_define
class EventList:
    """ 
        Attributes:
            events (list[AccountEvent | PaymentEvent | SaleEvent | UnmatchedEvent]): The events, oldest first.
            has_more (bool): Whether there are more items after this page.
            next_cursor (str): The next `after`. Store it in the same transaction as the processed events.
     """

    events: list[AccountEvent | PaymentEvent | SaleEvent | UnmatchedEvent]
    has_more: bool
    next_cursor: str





    def to_dict(self) -> dict[str, Any]:
        from ..models.account_event import AccountEvent # noqa: PLC0415
        from ..models.payment_event import PaymentEvent # noqa: PLC0415
        from ..models.sale_event import SaleEvent # noqa: PLC0415
        from ..models.unmatched_event import UnmatchedEvent # noqa: PLC0415
        events = []
        for events_item_data in self.events:
            events_item: dict[str, Any]
            if isinstance(events_item_data, PaymentEvent):
                events_item = events_item_data.to_dict()
            elif isinstance(events_item_data, SaleEvent):
                events_item = events_item_data.to_dict()
            elif isinstance(events_item_data, AccountEvent):
                events_item = events_item_data.to_dict()
            else:
                events_item = events_item_data.to_dict()

            events.append(events_item)



        has_more = self.has_more

        next_cursor = self.next_cursor


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "events": events,
            "hasMore": has_more,
            "nextCursor": next_cursor,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.account_event import AccountEvent # noqa: PLC0415
        from ..models.payment_event import PaymentEvent # noqa: PLC0415
        from ..models.sale_event import SaleEvent # noqa: PLC0415
        from ..models.unmatched_event import UnmatchedEvent # noqa: PLC0415
        d = dict(src_dict)
        events = []
        _events = d.pop("events")
        for events_item_data in (_events):
            def _parse_events_item(data: object) -> AccountEvent | PaymentEvent | SaleEvent | UnmatchedEvent:
                try:
                    if not isinstance(data, dict):
                        raise TypeError()
                    componentsschemas_event_type_0 = PaymentEvent.from_dict(data)



                    return componentsschemas_event_type_0
                except (TypeError, ValueError, AttributeError, KeyError):
                    pass
                try:
                    if not isinstance(data, dict):
                        raise TypeError()
                    componentsschemas_event_type_1 = SaleEvent.from_dict(data)



                    return componentsschemas_event_type_1
                except (TypeError, ValueError, AttributeError, KeyError):
                    pass
                try:
                    if not isinstance(data, dict):
                        raise TypeError()
                    componentsschemas_event_type_2 = AccountEvent.from_dict(data)



                    return componentsschemas_event_type_2
                except (TypeError, ValueError, AttributeError, KeyError):
                    pass
                if not isinstance(data, dict):
                    raise TypeError()
                componentsschemas_event_type_3 = UnmatchedEvent.from_dict(data)



                return componentsschemas_event_type_3

            events_item = _parse_events_item(events_item_data)

            events.append(events_item)


        has_more = d.pop("hasMore")

        next_cursor = d.pop("nextCursor")

        event_list = cls(
            events=events,
            has_more=has_more,
            next_cursor=next_cursor,
        )

        return event_list

