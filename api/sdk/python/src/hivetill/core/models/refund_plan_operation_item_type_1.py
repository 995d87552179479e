from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset







T = TypeVar("T", bound="RefundPlanOperationItemType1")



@_attrs_define
class RefundPlanOperationItemType1:
    """ 
        Attributes:
            amount (str): What is refunded, as the ledger writes it.
            from_ (str): The account that refunds.
            memo (str): The memo of the transfer. It identifies the payment.
            to (str): The account that is refunded.
     """

    amount: str
    from_: str
    memo: str
    to: str





    def to_dict(self) -> dict[str, Any]:
        amount = self.amount

        from_ = self.from_

        memo = self.memo

        to = self.to


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "amount": amount,
            "from": from_,
            "memo": memo,
            "to": to,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        amount = d.pop("amount")

        from_ = d.pop("from")

        memo = d.pop("memo")

        to = d.pop("to")

        refund_plan_operation_item_type_1 = cls(
            amount=amount,
            from_=from_,
            memo=memo,
            to=to,
        )

        return refund_plan_operation_item_type_1

