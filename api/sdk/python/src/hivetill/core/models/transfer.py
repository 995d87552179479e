from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.transfer_disposition import check_transfer_disposition
from ..models.transfer_disposition import TransferDisposition
from ..models.transfer_finality import check_transfer_finality
from ..models.transfer_finality import TransferFinality
from ..models.transfer_route import check_transfer_route
from ..models.transfer_route import TransferRoute
from typing import cast
import datetime

if TYPE_CHECKING:
  from ..models.sum_ import Sum





T = TypeVar("T", bound="Transfer")



@_attrs_define
class Transfer:
    """ A transfer that names a payment.

        Attributes:
            amount (Sum): An amount of a transfer or refund.
            block_num (int | None): The number of the block; `null` before the transfer is in one.
            block_time (datetime.datetime | None): The time of the block. It decides whether the transfer was in time.
            disposition (TransferDisposition): How the transfer counts: towards the amount, as surplus, late, after the
                final state, or not at all.
            finality (TransferFinality): Whether the block may still change. Only an irreversible transfer completes a
                payment of a wallet.
            from_ (str): The account that sent it.
            memo (str): The first 256 characters; a longer one ends with an ellipsis.
            memo_normalized (bool): Whether text around the payment's name in the memo was ignored.
            op_index (int): The place of the transfer among the operations of its transaction, from 0.
            route (TransferRoute): How the transfer was made: sent by a wallet, settled by x402, or assigned manually.
            to (str): The account that received it.
            tx_id (str): The id of the transaction on the ledger.
     """

    amount: Sum
    block_num: int | None
    block_time: datetime.datetime | None
    disposition: TransferDisposition
    finality: TransferFinality
    from_: str
    memo: str
    memo_normalized: bool
    op_index: int
    route: TransferRoute
    to: str
    tx_id: str





    def to_dict(self) -> dict[str, Any]:
        from ..models.sum_ import Sum # noqa: PLC0415
        amount = self.amount.to_dict()

        block_num: int | None
        block_num = self.block_num

        block_time: None | str
        if isinstance(self.block_time, datetime.datetime):
            block_time = self.block_time.isoformat()
        else:
            block_time = self.block_time

        disposition: str = self.disposition

        finality: str = self.finality

        from_ = self.from_

        memo = self.memo

        memo_normalized = self.memo_normalized

        op_index = self.op_index

        route: str = self.route

        to = self.to

        tx_id = self.tx_id


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "amount": amount,
            "blockNum": block_num,
            "blockTime": block_time,
            "disposition": disposition,
            "finality": finality,
            "from": from_,
            "memo": memo,
            "memoNormalized": memo_normalized,
            "opIndex": op_index,
            "route": route,
            "to": to,
            "txId": tx_id,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.sum_ import Sum # noqa: PLC0415
        d = dict(src_dict)
        amount = Sum.from_dict(d.pop("amount"))




        def _parse_block_num(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        block_num = _parse_block_num(d.pop("blockNum"))


        def _parse_block_time(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                block_time_type_0 = datetime.datetime.fromisoformat(data)



                return block_time_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        block_time = _parse_block_time(d.pop("blockTime"))


        disposition = check_transfer_disposition(d.pop("disposition"))




        finality = check_transfer_finality(d.pop("finality"))




        from_ = d.pop("from")

        memo = d.pop("memo")

        memo_normalized = d.pop("memoNormalized")

        op_index = d.pop("opIndex")

        route = check_transfer_route(d.pop("route"))




        to = d.pop("to")

        tx_id = d.pop("txId")

        transfer = cls(
            amount=amount,
            block_num=block_num,
            block_time=block_time,
            disposition=disposition,
            finality=finality,
            from_=from_,
            memo=memo,
            memo_normalized=memo_normalized,
            op_index=op_index,
            route=route,
            to=to,
            tx_id=tx_id,
        )

        return transfer

