from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.test_webhook_status import check_test_webhook_status
from ..models.test_webhook_status import TestWebhookStatus
from ..models.test_webhook_type import check_test_webhook_type
from ..models.test_webhook_type import TestWebhookType
from ..types import UNSET, Unset
from typing import cast






T = TypeVar("T", bound="TestWebhook")



@_attrs_define
class TestWebhook:
    """ 
        Attributes:
            status (TestWebhookStatus | Unset): The status in an event of a payment. Default: `completed`. Not allowed for
                other events.
            type_ (TestWebhookType | Unset): The event to send. Default: `payment.status_changed`.
     """

    status: TestWebhookStatus | Unset = UNSET
    type_: TestWebhookType | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)





    def to_dict(self) -> dict[str, Any]:
        status: str | Unset = UNSET
        if not isinstance(self.status, Unset):
            status = self.status


        type_: str | Unset = UNSET
        if not isinstance(self.type_, Unset):
            type_ = self.type_



        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({
        })
        if status is not UNSET:
            field_dict["status"] = status
        if type_ is not UNSET:
            field_dict["type"] = type_

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        _status = d.pop("status", UNSET)
        status: TestWebhookStatus | Unset
        if isinstance(_status,  Unset):
            status = UNSET
        else:
            status = check_test_webhook_status(_status)




        _type_ = d.pop("type", UNSET)
        type_: TestWebhookType | Unset
        if isinstance(_type_,  Unset):
            type_ = UNSET
        else:
            type_ = check_test_webhook_type(_type_)




        test_webhook = cls(
            status=status,
            type_=type_,
        )


        test_webhook.additional_properties = d
        return test_webhook

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
