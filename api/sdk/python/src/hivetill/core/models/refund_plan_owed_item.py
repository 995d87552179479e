from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
  from ..models.sum_ import Sum





T = TypeVar("T", bound="RefundPlanOwedItem")



@_attrs_define
class RefundPlanOwedItem:
    """ 
        Attributes:
            amount (Sum): An amount of a transfer or refund.
            to (str): The payer.
     """

    amount: Sum
    to: str





    def to_dict(self) -> dict[str, Any]:
        from ..models.sum_ import Sum # noqa: PLC0415
        amount = self.amount.to_dict()

        to = self.to


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "amount": amount,
            "to": to,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.sum_ import Sum # noqa: PLC0415
        d = dict(src_dict)
        amount = Sum.from_dict(d.pop("amount"))




        to = d.pop("to")

        refund_plan_owed_item = cls(
            amount=amount,
            to=to,
        )

        return refund_plan_owed_item

