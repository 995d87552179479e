from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
  from ..models.admin_billing_period import AdminBillingPeriod





T = TypeVar("T", bound="GeneratedInvoicesDetailsItem")



@_attrs_define
class GeneratedInvoicesDetailsItem:
    """ 
        Attributes:
            invoice_cents (int): The invoice amount of the month, in US cents.
            merchant_id (str): The id of the merchant.
            merchant_name (str): The merchant's name.
            period (AdminBillingPeriod):
            volume_cents (int): The volume in US cents.
     """

    invoice_cents: int
    merchant_id: str
    merchant_name: str
    period: AdminBillingPeriod
    volume_cents: int





    def to_dict(self) -> dict[str, Any]:
        from ..models.admin_billing_period import AdminBillingPeriod # noqa: PLC0415
        invoice_cents = self.invoice_cents

        merchant_id = self.merchant_id

        merchant_name = self.merchant_name

        period = self.period.to_dict()

        volume_cents = self.volume_cents


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "invoiceCents": invoice_cents,
            "merchantId": merchant_id,
            "merchantName": merchant_name,
            "period": period,
            "volumeCents": volume_cents,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.admin_billing_period import AdminBillingPeriod # noqa: PLC0415
        d = dict(src_dict)
        invoice_cents = d.pop("invoiceCents")

        merchant_id = d.pop("merchantId")

        merchant_name = d.pop("merchantName")

        period = AdminBillingPeriod.from_dict(d.pop("period"))




        volume_cents = d.pop("volumeCents")

        generated_invoices_details_item = cls(
            invoice_cents=invoice_cents,
            merchant_id=merchant_id,
            merchant_name=merchant_name,
            period=period,
            volume_cents=volume_cents,
        )

        return generated_invoices_details_item

