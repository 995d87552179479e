from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast

if TYPE_CHECKING:
  from ..models.payment import Payment
  from ..models.payment_page_pagination import PaymentPagePagination





T = TypeVar("T", bound="PaymentPage")



@_attrs_define
class PaymentPage:
    """ 
        Attributes:
            data (list[Payment]): The items of this page.
            pagination (PaymentPagePagination): The position of this page in the list.
            next_cursor (None | str | Unset): The `cursor` of the next page; `null` or absent on the last page.
     """

    data: list[Payment]
    pagination: PaymentPagePagination
    next_cursor: None | str | Unset = UNSET





    def to_dict(self) -> dict[str, Any]:
        from ..models.payment import Payment # noqa: PLC0415
        from ..models.payment_page_pagination import PaymentPagePagination # noqa: PLC0415
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
        from ..models.payment import Payment # noqa: PLC0415
        from ..models.payment_page_pagination import PaymentPagePagination # noqa: PLC0415
        d = dict(src_dict)
        data = []
        _data = d.pop("data")
        for data_item_data in (_data):
            data_item = Payment.from_dict(data_item_data)



            data.append(data_item)


        pagination = PaymentPagePagination.from_dict(d.pop("pagination"))




        def _parse_next_cursor(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        next_cursor = _parse_next_cursor(d.pop("nextCursor", UNSET))


        payment_page = cls(
            data=data,
            pagination=pagination,
            next_cursor=next_cursor,
        )

        return payment_page

