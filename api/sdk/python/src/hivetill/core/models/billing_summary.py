from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
  from ..models.billing_period import BillingPeriod
  from ..models.billing_summary_current_month import BillingSummaryCurrentMonth
  from ..models.fee_tier import FeeTier





T = TypeVar("T", bound="BillingSummary")



@_attrs_define
class BillingSummary:
    """ 
        Attributes:
            current_month (BillingSummaryCurrentMonth): The current month.
            fee_tiers (list[FeeTier]): The tiers in force.
            merchant_id (str): The id of the merchant.
            merchant_name (str): The merchant's name.
            outstanding_amount_cents (int): What is owed, in US cents.
            outstanding_invoices (list[BillingPeriod]): Months that are not paid.
            paid_invoices (list[BillingPeriod]): Months that are paid.
            total_paid_cents (int): What was paid, in US cents.
     """

    current_month: BillingSummaryCurrentMonth
    fee_tiers: list[FeeTier]
    merchant_id: str
    merchant_name: str
    outstanding_amount_cents: int
    outstanding_invoices: list[BillingPeriod]
    paid_invoices: list[BillingPeriod]
    total_paid_cents: int





    def to_dict(self) -> dict[str, Any]:
        from ..models.billing_period import BillingPeriod # noqa: PLC0415
        from ..models.billing_summary_current_month import BillingSummaryCurrentMonth # noqa: PLC0415
        from ..models.fee_tier import FeeTier # noqa: PLC0415
        current_month = self.current_month.to_dict()

        fee_tiers = []
        for fee_tiers_item_data in self.fee_tiers:
            fee_tiers_item = fee_tiers_item_data.to_dict()
            fee_tiers.append(fee_tiers_item)



        merchant_id = self.merchant_id

        merchant_name = self.merchant_name

        outstanding_amount_cents = self.outstanding_amount_cents

        outstanding_invoices = []
        for outstanding_invoices_item_data in self.outstanding_invoices:
            outstanding_invoices_item = outstanding_invoices_item_data.to_dict()
            outstanding_invoices.append(outstanding_invoices_item)



        paid_invoices = []
        for paid_invoices_item_data in self.paid_invoices:
            paid_invoices_item = paid_invoices_item_data.to_dict()
            paid_invoices.append(paid_invoices_item)



        total_paid_cents = self.total_paid_cents


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "currentMonth": current_month,
            "feeTiers": fee_tiers,
            "merchantId": merchant_id,
            "merchantName": merchant_name,
            "outstandingAmountCents": outstanding_amount_cents,
            "outstandingInvoices": outstanding_invoices,
            "paidInvoices": paid_invoices,
            "totalPaidCents": total_paid_cents,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.billing_period import BillingPeriod # noqa: PLC0415
        from ..models.billing_summary_current_month import BillingSummaryCurrentMonth # noqa: PLC0415
        from ..models.fee_tier import FeeTier # noqa: PLC0415
        d = dict(src_dict)
        current_month = BillingSummaryCurrentMonth.from_dict(d.pop("currentMonth"))




        fee_tiers = []
        _fee_tiers = d.pop("feeTiers")
        for fee_tiers_item_data in (_fee_tiers):
            fee_tiers_item = FeeTier.from_dict(fee_tiers_item_data)



            fee_tiers.append(fee_tiers_item)


        merchant_id = d.pop("merchantId")

        merchant_name = d.pop("merchantName")

        outstanding_amount_cents = d.pop("outstandingAmountCents")

        outstanding_invoices = []
        _outstanding_invoices = d.pop("outstandingInvoices")
        for outstanding_invoices_item_data in (_outstanding_invoices):
            outstanding_invoices_item = BillingPeriod.from_dict(outstanding_invoices_item_data)



            outstanding_invoices.append(outstanding_invoices_item)


        paid_invoices = []
        _paid_invoices = d.pop("paidInvoices")
        for paid_invoices_item_data in (_paid_invoices):
            paid_invoices_item = BillingPeriod.from_dict(paid_invoices_item_data)



            paid_invoices.append(paid_invoices_item)


        total_paid_cents = d.pop("totalPaidCents")

        billing_summary = cls(
            current_month=current_month,
            fee_tiers=fee_tiers,
            merchant_id=merchant_id,
            merchant_name=merchant_name,
            outstanding_amount_cents=outstanding_amount_cents,
            outstanding_invoices=outstanding_invoices,
            paid_invoices=paid_invoices,
            total_paid_cents=total_paid_cents,
        )

        return billing_summary

