from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.sale_kind import check_sale_kind
from ..models.sale_kind import SaleKind
from typing import cast
import datetime

if TYPE_CHECKING:
  from ..models.sum_ import Sum





T = TypeVar("T", bound="Sale")



@_attrs_define
class Sale:
    """ 
        Attributes:
            amount (Sum): An amount of a transfer or refund.
            block_num (int): The number of the block.
            block_time (datetime.datetime): The time of the block.
            claimed_at (datetime.datetime): When the payment was settled.
            id (str): The id of the sale.
            kind (SaleKind): How it was sold.
            memo (str): The memo of the transfer.
            op_index (int): The place of the transfer among the operations of its transaction, from 0.
            pay_to (str): The account that was paid.
            payer (str): The account that pays. Present after its signatures were verified.
            resource (str): What was sold: the resource that the seller named when it settled.
            tx_id (str): The id of the transaction on the ledger.
     """

    amount: Sum
    block_num: int
    block_time: datetime.datetime
    claimed_at: datetime.datetime
    id: str
    kind: SaleKind
    memo: str
    op_index: int
    pay_to: str
    payer: str
    resource: str
    tx_id: str





    def to_dict(self) -> dict[str, Any]:
        from ..models.sum_ import Sum # noqa: PLC0415
        amount = self.amount.to_dict()

        block_num = self.block_num

        block_time = self.block_time.isoformat()

        claimed_at = self.claimed_at.isoformat()

        id = self.id

        kind: str = self.kind

        memo = self.memo

        op_index = self.op_index

        pay_to = self.pay_to

        payer = self.payer

        resource = self.resource

        tx_id = self.tx_id


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "amount": amount,
            "blockNum": block_num,
            "blockTime": block_time,
            "claimedAt": claimed_at,
            "id": id,
            "kind": kind,
            "memo": memo,
            "opIndex": op_index,
            "payTo": pay_to,
            "payer": payer,
            "resource": resource,
            "txId": tx_id,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.sum_ import Sum # noqa: PLC0415
        d = dict(src_dict)
        amount = Sum.from_dict(d.pop("amount"))




        block_num = d.pop("blockNum")

        block_time = datetime.datetime.fromisoformat(d.pop("blockTime"))




        claimed_at = datetime.datetime.fromisoformat(d.pop("claimedAt"))




        id = d.pop("id")

        kind = check_sale_kind(d.pop("kind"))




        memo = d.pop("memo")

        op_index = d.pop("opIndex")

        pay_to = d.pop("payTo")

        payer = d.pop("payer")

        resource = d.pop("resource")

        tx_id = d.pop("txId")

        sale = cls(
            amount=amount,
            block_num=block_num,
            block_time=block_time,
            claimed_at=claimed_at,
            id=id,
            kind=kind,
            memo=memo,
            op_index=op_index,
            pay_to=pay_to,
            payer=payer,
            resource=resource,
            tx_id=tx_id,
        )

        return sale

