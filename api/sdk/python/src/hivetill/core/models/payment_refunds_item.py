from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime

if TYPE_CHECKING:
  from ..models.sum_ import Sum





T = TypeVar("T", bound="PaymentRefundsItem")



@_attrs_define
class PaymentRefundsItem:
    """ 
        Attributes:
            amount (Sum): An amount of a transfer or refund.
            at (datetime.datetime): The block time of the refund.
            op_index (int): The place of the transfer among the operations of its transaction, from 0.
            tx_id (str): The transaction of the refund.
     """

    amount: Sum
    at: datetime.datetime
    op_index: int
    tx_id: str





    def to_dict(self) -> dict[str, Any]:
        from ..models.sum_ import Sum # noqa: PLC0415
        amount = self.amount.to_dict()

        at = self.at.isoformat()

        op_index = self.op_index

        tx_id = self.tx_id


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "amount": amount,
            "at": at,
            "opIndex": op_index,
            "txId": tx_id,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.sum_ import Sum # noqa: PLC0415
        d = dict(src_dict)
        amount = Sum.from_dict(d.pop("amount"))




        at = datetime.datetime.fromisoformat(d.pop("at"))




        op_index = d.pop("opIndex")

        tx_id = d.pop("txId")

        payment_refunds_item = cls(
            amount=amount,
            at=at,
            op_index=op_index,
            tx_id=tx_id,
        )

        return payment_refunds_item

