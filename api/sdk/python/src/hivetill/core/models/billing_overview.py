from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
  from ..models.billing_overview_merchants_item import BillingOverviewMerchantsItem
  from ..models.billing_overview_totals import BillingOverviewTotals





T = TypeVar("T", bound="BillingOverview")



@_attrs_define
class BillingOverview:
    """ 
        Attributes:
            merchants (list[BillingOverviewMerchantsItem]): One entry for each merchant.
            totals (BillingOverviewTotals): Sums over all merchants.
     """

    merchants: list[BillingOverviewMerchantsItem]
    totals: BillingOverviewTotals





    def to_dict(self) -> dict[str, Any]:
        from ..models.billing_overview_merchants_item import BillingOverviewMerchantsItem # noqa: PLC0415
        from ..models.billing_overview_totals import BillingOverviewTotals # noqa: PLC0415
        merchants = []
        for merchants_item_data in self.merchants:
            merchants_item = merchants_item_data.to_dict()
            merchants.append(merchants_item)



        totals = self.totals.to_dict()


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "merchants": merchants,
            "totals": totals,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.billing_overview_merchants_item import BillingOverviewMerchantsItem # noqa: PLC0415
        from ..models.billing_overview_totals import BillingOverviewTotals # noqa: PLC0415
        d = dict(src_dict)
        merchants = []
        _merchants = d.pop("merchants")
        for merchants_item_data in (_merchants):
            merchants_item = BillingOverviewMerchantsItem.from_dict(merchants_item_data)



            merchants.append(merchants_item)


        totals = BillingOverviewTotals.from_dict(d.pop("totals"))




        billing_overview = cls(
            merchants=merchants,
            totals=totals,
        )

        return billing_overview

