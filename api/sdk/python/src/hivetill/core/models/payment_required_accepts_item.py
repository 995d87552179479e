from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.payment_required_accepts_item_network import check_payment_required_accepts_item_network
from ..models.payment_required_accepts_item_network import PaymentRequiredAcceptsItemNetwork
from ..models.payment_required_accepts_item_scheme import check_payment_required_accepts_item_scheme
from ..models.payment_required_accepts_item_scheme import PaymentRequiredAcceptsItemScheme
from ..models.payment_required_accepts_item_x402_version import check_payment_required_accepts_item_x402_version
from ..models.payment_required_accepts_item_x402_version import PaymentRequiredAcceptsItemX402Version
from typing import cast
import datetime

if TYPE_CHECKING:
  from ..models.payment_required_accepts_item_extra import PaymentRequiredAcceptsItemExtra





T = TypeVar("T", bound="PaymentRequiredAcceptsItem")



@_attrs_define
class PaymentRequiredAcceptsItem:
    """ 
        Attributes:
            asset (str): The currency.
            description (str): What the customer buys.
            extra (PaymentRequiredAcceptsItemExtra): Additional requirements for the transfer.
            max_amount_required (str): What must be paid.
            max_timeout_seconds (int): How long the payment may take.
            mime_type (str): The media type of the response after the payment.
            network (PaymentRequiredAcceptsItemNetwork): The network.
            pay_to (str): The Hive account that is paid. It is fixed at creation.
            resource (str): The URL of the paid resource.
            scheme (PaymentRequiredAcceptsItemScheme): The scheme of the payment.
            valid_before (datetime.datetime): When the offer expires.
            x_402_version (PaymentRequiredAcceptsItemX402Version): The version of x402.
     """

    asset: str
    description: str
    extra: PaymentRequiredAcceptsItemExtra
    max_amount_required: str
    max_timeout_seconds: int
    mime_type: str
    network: PaymentRequiredAcceptsItemNetwork
    pay_to: str
    resource: str
    scheme: PaymentRequiredAcceptsItemScheme
    valid_before: datetime.datetime
    x_402_version: PaymentRequiredAcceptsItemX402Version





    def to_dict(self) -> dict[str, Any]:
        from ..models.payment_required_accepts_item_extra import PaymentRequiredAcceptsItemExtra # noqa: PLC0415
        asset = self.asset

        description = self.description

        extra = self.extra.to_dict()

        max_amount_required = self.max_amount_required

        max_timeout_seconds = self.max_timeout_seconds

        mime_type = self.mime_type

        network: str = self.network

        pay_to = self.pay_to

        resource = self.resource

        scheme: str = self.scheme

        valid_before = self.valid_before.isoformat()

        x_402_version: int = self.x_402_version


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "asset": asset,
            "description": description,
            "extra": extra,
            "maxAmountRequired": max_amount_required,
            "maxTimeoutSeconds": max_timeout_seconds,
            "mimeType": mime_type,
            "network": network,
            "payTo": pay_to,
            "resource": resource,
            "scheme": scheme,
            "validBefore": valid_before,
            "x402Version": x_402_version,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.payment_required_accepts_item_extra import PaymentRequiredAcceptsItemExtra # noqa: PLC0415
        d = dict(src_dict)
        asset = d.pop("asset")

        description = d.pop("description")

        extra = PaymentRequiredAcceptsItemExtra.from_dict(d.pop("extra"))




        max_amount_required = d.pop("maxAmountRequired")

        max_timeout_seconds = d.pop("maxTimeoutSeconds")

        mime_type = d.pop("mimeType")

        network = check_payment_required_accepts_item_network(d.pop("network"))




        pay_to = d.pop("payTo")

        resource = d.pop("resource")

        scheme = check_payment_required_accepts_item_scheme(d.pop("scheme"))




        valid_before = datetime.datetime.fromisoformat(d.pop("validBefore"))




        x_402_version = check_payment_required_accepts_item_x402_version(d.pop("x402Version"))




        payment_required_accepts_item = cls(
            asset=asset,
            description=description,
            extra=extra,
            max_amount_required=max_amount_required,
            max_timeout_seconds=max_timeout_seconds,
            mime_type=mime_type,
            network=network,
            pay_to=pay_to,
            resource=resource,
            scheme=scheme,
            valid_before=valid_before,
            x_402_version=x_402_version,
        )

        return payment_required_accepts_item

