from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset






T = TypeVar("T", bound="BillingPeriodPagePagination")



@_attrs_define
class BillingPeriodPagePagination:
    """ The position of this page in the list.

        Attributes:
            limit (int): How many items a page holds at most.
            page (int): The number of this page, from 1.
            total (int | Unset): The number of items. Absent for pages by `cursor`.
            total_is_lower_bound (bool | Unset): Whether there are more items than `total`: filters by amount, words or a
                part of a day count up to 10,000. Absent if `total` is exact.
            total_pages (int | Unset): The number of pages. Absent for pages by `cursor`.
     """

    limit: int
    page: int
    total: int | Unset = UNSET
    total_is_lower_bound: bool | Unset = UNSET
    total_pages: int | Unset = UNSET





    def to_dict(self) -> dict[str, Any]:
        limit = self.limit

        page = self.page

        total = self.total

        total_is_lower_bound = self.total_is_lower_bound

        total_pages = self.total_pages


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "limit": limit,
            "page": page,
        })
        if total is not UNSET:
            field_dict["total"] = total
        if total_is_lower_bound is not UNSET:
            field_dict["totalIsLowerBound"] = total_is_lower_bound
        if total_pages is not UNSET:
            field_dict["totalPages"] = total_pages

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        limit = d.pop("limit")

        page = d.pop("page")

        total = d.pop("total", UNSET)

        total_is_lower_bound = d.pop("totalIsLowerBound", UNSET)

        total_pages = d.pop("totalPages", UNSET)

        billing_period_page_pagination = cls(
            limit=limit,
            page=page,
            total=total,
            total_is_lower_bound=total_is_lower_bound,
            total_pages=total_pages,
        )

        return billing_period_page_pagination

