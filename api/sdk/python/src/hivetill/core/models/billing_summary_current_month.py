from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime






T = TypeVar("T", bound="BillingSummaryCurrentMonth")



@_attrs_define
class BillingSummaryCurrentMonth:
    """ The current month.

        Attributes:
            period_end (datetime.datetime): The end of the month, exclusive.
            period_start (datetime.datetime): The beginning of the month, in UTC.
            projected_invoice_cents (int): The projected invoice amount of the current month.
            total_volume_cents (int): The volume in US cents.
            transaction_count (int): The number of completed payments.
     """

    period_end: datetime.datetime
    period_start: datetime.datetime
    projected_invoice_cents: int
    total_volume_cents: int
    transaction_count: int





    def to_dict(self) -> dict[str, Any]:
        period_end = self.period_end.isoformat()

        period_start = self.period_start.isoformat()

        projected_invoice_cents = self.projected_invoice_cents

        total_volume_cents = self.total_volume_cents

        transaction_count = self.transaction_count


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "periodEnd": period_end,
            "periodStart": period_start,
            "projectedInvoiceCents": projected_invoice_cents,
            "totalVolumeCents": total_volume_cents,
            "transactionCount": transaction_count,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        period_end = datetime.datetime.fromisoformat(d.pop("periodEnd"))




        period_start = datetime.datetime.fromisoformat(d.pop("periodStart"))




        projected_invoice_cents = d.pop("projectedInvoiceCents")

        total_volume_cents = d.pop("totalVolumeCents")

        transaction_count = d.pop("transactionCount")

        billing_summary_current_month = cls(
            period_end=period_end,
            period_start=period_start,
            projected_invoice_cents=projected_invoice_cents,
            total_volume_cents=total_volume_cents,
            transaction_count=transaction_count,
        )

        return billing_summary_current_month

