from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset







T = TypeVar("T", bound="BillingOverviewTotals")



@_attrs_define
class BillingOverviewTotals:
    """ Sums over all merchants.

        Attributes:
            current_month_projected_cents (int): The projected invoice amount of the current month.
            current_month_volume_cents (int): The volume of the current month, in US cents.
            merchants_behind_count (int): Merchants with an overdue month.
            merchants_count (int): The number of merchants.
            merchants_paid_count (int): Merchants that owe nothing.
            total_outstanding_cents (int): The total amount owed, in US cents.
            total_paid_all_time_cents (int): The total amount paid, in US cents.
     """

    current_month_projected_cents: int
    current_month_volume_cents: int
    merchants_behind_count: int
    merchants_count: int
    merchants_paid_count: int
    total_outstanding_cents: int
    total_paid_all_time_cents: int





    def to_dict(self) -> dict[str, Any]:
        current_month_projected_cents = self.current_month_projected_cents

        current_month_volume_cents = self.current_month_volume_cents

        merchants_behind_count = self.merchants_behind_count

        merchants_count = self.merchants_count

        merchants_paid_count = self.merchants_paid_count

        total_outstanding_cents = self.total_outstanding_cents

        total_paid_all_time_cents = self.total_paid_all_time_cents


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "currentMonthProjectedCents": current_month_projected_cents,
            "currentMonthVolumeCents": current_month_volume_cents,
            "merchantsBehindCount": merchants_behind_count,
            "merchantsCount": merchants_count,
            "merchantsPaidCount": merchants_paid_count,
            "totalOutstandingCents": total_outstanding_cents,
            "totalPaidAllTimeCents": total_paid_all_time_cents,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        current_month_projected_cents = d.pop("currentMonthProjectedCents")

        current_month_volume_cents = d.pop("currentMonthVolumeCents")

        merchants_behind_count = d.pop("merchantsBehindCount")

        merchants_count = d.pop("merchantsCount")

        merchants_paid_count = d.pop("merchantsPaidCount")

        total_outstanding_cents = d.pop("totalOutstandingCents")

        total_paid_all_time_cents = d.pop("totalPaidAllTimeCents")

        billing_overview_totals = cls(
            current_month_projected_cents=current_month_projected_cents,
            current_month_volume_cents=current_month_volume_cents,
            merchants_behind_count=merchants_behind_count,
            merchants_count=merchants_count,
            merchants_paid_count=merchants_paid_count,
            total_outstanding_cents=total_outstanding_cents,
            total_paid_all_time_cents=total_paid_all_time_cents,
        )

        return billing_overview_totals

