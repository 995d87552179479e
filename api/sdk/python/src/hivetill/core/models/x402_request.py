from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast

if TYPE_CHECKING:
  from ..models.x402_request_payment_payload import X402RequestPaymentPayload
  from ..models.x402_request_payment_requirements import X402RequestPaymentRequirements





T = TypeVar("T", bound="X402Request")



@_attrs_define
class X402Request:
    """ A payment for a payment of this gateway (`sessionId`) or for another server (`paymentRequirements`).

        Attributes:
            payment_payload (X402RequestPaymentPayload): The payment as the payer signed it.
            payment_requirements (X402RequestPaymentRequirements | Unset): The payment requirements of your server.
            session_id (str | Unset): The payment of this gateway to settle. Omit it if you send `paymentRequirements`.
     """

    payment_payload: X402RequestPaymentPayload
    payment_requirements: X402RequestPaymentRequirements | Unset = UNSET
    session_id: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)





    def to_dict(self) -> dict[str, Any]:
        from ..models.x402_request_payment_payload import X402RequestPaymentPayload # noqa: PLC0415
        from ..models.x402_request_payment_requirements import X402RequestPaymentRequirements # noqa: PLC0415
        payment_payload = self.payment_payload.to_dict()

        payment_requirements: dict[str, Any] | Unset = UNSET
        if not isinstance(self.payment_requirements, Unset):
            payment_requirements = self.payment_requirements.to_dict()

        session_id = self.session_id


        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({
            "paymentPayload": payment_payload,
        })
        if payment_requirements is not UNSET:
            field_dict["paymentRequirements"] = payment_requirements
        if session_id is not UNSET:
            field_dict["sessionId"] = session_id

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.x402_request_payment_payload import X402RequestPaymentPayload # noqa: PLC0415
        from ..models.x402_request_payment_requirements import X402RequestPaymentRequirements # noqa: PLC0415
        d = dict(src_dict)
        payment_payload = X402RequestPaymentPayload.from_dict(d.pop("paymentPayload"))




        _payment_requirements = d.pop("paymentRequirements", UNSET)
        payment_requirements: X402RequestPaymentRequirements | Unset
        if isinstance(_payment_requirements,  Unset):
            payment_requirements = UNSET
        else:
            payment_requirements = X402RequestPaymentRequirements.from_dict(_payment_requirements)




        session_id = d.pop("sessionId", UNSET)

        x402_request = cls(
            payment_payload=payment_payload,
            payment_requirements=payment_requirements,
            session_id=session_id,
        )


        x402_request.additional_properties = d
        return x402_request

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
