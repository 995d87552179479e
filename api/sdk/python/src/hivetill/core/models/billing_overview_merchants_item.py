from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime






T = TypeVar("T", bound="BillingOverviewMerchantsItem")



@_attrs_define
class BillingOverviewMerchantsItem:
    """ 
        Attributes:
            current_month_projected_cents (int): The projected invoice amount of the current month.
            current_month_volume_cents (int): The volume of the current month, in US cents.
            hive_account_name (str): Alias of `hiveAccount`.
            icon_url (None | str): The merchant's logo.
            is_behind (bool): Whether a month is overdue.
            merchant_id (str): The id of the merchant.
            merchant_name (str): The merchant's name.
            oldest_unpaid_period_start (datetime.datetime | None): The beginning of the oldest month that is not paid.
            outstanding_amount_cents (int): What is owed, in US cents.
            outstanding_invoices (int): The number of months that are not paid.
            paid_amount_cents (int): What the merchant paid, in US cents.
            paid_invoices (int): The number of months that are paid.
     """

    current_month_projected_cents: int
    current_month_volume_cents: int
    hive_account_name: str
    icon_url: None | str
    is_behind: bool
    merchant_id: str
    merchant_name: str
    oldest_unpaid_period_start: datetime.datetime | None
    outstanding_amount_cents: int
    outstanding_invoices: int
    paid_amount_cents: int
    paid_invoices: int





    def to_dict(self) -> dict[str, Any]:
        current_month_projected_cents = self.current_month_projected_cents

        current_month_volume_cents = self.current_month_volume_cents

        hive_account_name = self.hive_account_name

        icon_url: None | str
        icon_url = self.icon_url

        is_behind = self.is_behind

        merchant_id = self.merchant_id

        merchant_name = self.merchant_name

        oldest_unpaid_period_start: None | str
        if isinstance(self.oldest_unpaid_period_start, datetime.datetime):
            oldest_unpaid_period_start = self.oldest_unpaid_period_start.isoformat()
        else:
            oldest_unpaid_period_start = self.oldest_unpaid_period_start

        outstanding_amount_cents = self.outstanding_amount_cents

        outstanding_invoices = self.outstanding_invoices

        paid_amount_cents = self.paid_amount_cents

        paid_invoices = self.paid_invoices


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "currentMonthProjectedCents": current_month_projected_cents,
            "currentMonthVolumeCents": current_month_volume_cents,
            "hiveAccountName": hive_account_name,
            "iconUrl": icon_url,
            "isBehind": is_behind,
            "merchantId": merchant_id,
            "merchantName": merchant_name,
            "oldestUnpaidPeriodStart": oldest_unpaid_period_start,
            "outstandingAmountCents": outstanding_amount_cents,
            "outstandingInvoices": outstanding_invoices,
            "paidAmountCents": paid_amount_cents,
            "paidInvoices": paid_invoices,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        current_month_projected_cents = d.pop("currentMonthProjectedCents")

        current_month_volume_cents = d.pop("currentMonthVolumeCents")

        hive_account_name = d.pop("hiveAccountName")

        def _parse_icon_url(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        icon_url = _parse_icon_url(d.pop("iconUrl"))


        is_behind = d.pop("isBehind")

        merchant_id = d.pop("merchantId")

        merchant_name = d.pop("merchantName")

        def _parse_oldest_unpaid_period_start(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                oldest_unpaid_period_start_type_0 = datetime.datetime.fromisoformat(data)



                return oldest_unpaid_period_start_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        oldest_unpaid_period_start = _parse_oldest_unpaid_period_start(d.pop("oldestUnpaidPeriodStart"))


        outstanding_amount_cents = d.pop("outstandingAmountCents")

        outstanding_invoices = d.pop("outstandingInvoices")

        paid_amount_cents = d.pop("paidAmountCents")

        paid_invoices = d.pop("paidInvoices")

        billing_overview_merchants_item = cls(
            current_month_projected_cents=current_month_projected_cents,
            current_month_volume_cents=current_month_volume_cents,
            hive_account_name=hive_account_name,
            icon_url=icon_url,
            is_behind=is_behind,
            merchant_id=merchant_id,
            merchant_name=merchant_name,
            oldest_unpaid_period_start=oldest_unpaid_period_start,
            outstanding_amount_cents=outstanding_amount_cents,
            outstanding_invoices=outstanding_invoices,
            paid_amount_cents=paid_amount_cents,
            paid_invoices=paid_invoices,
        )

        return billing_overview_merchants_item

