from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast

if TYPE_CHECKING:
  from ..models.merchant import Merchant
  from ..models.merchant_page_pagination import MerchantPagePagination





T = TypeVar("T", bound="MerchantPage")



@_attrs_define
class MerchantPage:
    """ 
        Attributes:
            data (list[Merchant]): The items of this page.
            pagination (MerchantPagePagination): The position of this page in the list.
            next_cursor (None | str | Unset): The `cursor` of the next page; `null` or absent on the last page.
     """

    data: list[Merchant]
    pagination: MerchantPagePagination
    next_cursor: None | str | Unset = UNSET





    def to_dict(self) -> dict[str, Any]:
        from ..models.merchant import Merchant # noqa: PLC0415
        from ..models.merchant_page_pagination import MerchantPagePagination # noqa: PLC0415
        data = []
        for data_item_data in self.data:
            data_item = data_item_data.to_dict()
            data.append(data_item)



        pagination = self.pagination.to_dict()

        next_cursor: None | str | Unset
        if isinstance(self.next_cursor, Unset):
            next_cursor = UNSET
        else:
            next_cursor = self.next_cursor


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "data": data,
            "pagination": pagination,
        })
        if next_cursor is not UNSET:
            field_dict["nextCursor"] = next_cursor

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.merchant import Merchant # noqa: PLC0415
        from ..models.merchant_page_pagination import MerchantPagePagination # noqa: PLC0415
        d = dict(src_dict)
        data = []
        _data = d.pop("data")
        for data_item_data in (_data):
            data_item = Merchant.from_dict(data_item_data)



            data.append(data_item)


        pagination = MerchantPagePagination.from_dict(d.pop("pagination"))




        def _parse_next_cursor(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        next_cursor = _parse_next_cursor(d.pop("nextCursor", UNSET))


        merchant_page = cls(
            data=data,
            pagination=pagination,
            next_cursor=next_cursor,
        )

        return merchant_page

