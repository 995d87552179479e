from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.unmatched_reason import check_unmatched_reason
from ..models.unmatched_reason import UnmatchedReason
from ..models.unmatched_status import check_unmatched_status
from ..models.unmatched_status import UnmatchedStatus
from typing import cast
import datetime

if TYPE_CHECKING:
  from ..models.sum_ import Sum





T = TypeVar("T", bound="Unmatched")



@_attrs_define
class Unmatched:
    """ 
        Attributes:
            amount (Sum): An amount of a transfer or refund.
            block_num (int): The number of the block.
            block_time (datetime.datetime): The time of the block.
            from_ (str): The account that sent it.
            handled_at (datetime.datetime | None): When it was decided.
            handled_by (None | str): The API key that was used; `memo` if the memo of a later transfer decided.
            id (str): The id of the unmatched transfer.
            memo (str): The memo of the transfer.
            note (None | str): A note for yourself.
            op_index (int): The place of the transfer among the operations of its transaction, from 0.
            payment_id (None | str): The payment that it was assigned to, or that its memo names.
            reason (UnmatchedReason): Why it matches no payment.
            status (UnmatchedStatus): Whether the transfer is handled.
            to (str): The account that received it.
            tx_id (str): The id of the transaction on the ledger.
     """

    amount: Sum
    block_num: int
    block_time: datetime.datetime
    from_: str
    handled_at: datetime.datetime | None
    handled_by: None | str
    id: str
    memo: str
    note: None | str
    op_index: int
    payment_id: None | str
    reason: UnmatchedReason
    status: UnmatchedStatus
    to: str
    tx_id: str





    def to_dict(self) -> dict[str, Any]:
        from ..models.sum_ import Sum # noqa: PLC0415
        amount = self.amount.to_dict()

        block_num = self.block_num

        block_time = self.block_time.isoformat()

        from_ = self.from_

        handled_at: None | str
        if isinstance(self.handled_at, datetime.datetime):
            handled_at = self.handled_at.isoformat()
        else:
            handled_at = self.handled_at

        handled_by: None | str
        handled_by = self.handled_by

        id = self.id

        memo = self.memo

        note: None | str
        note = self.note

        op_index = self.op_index

        payment_id: None | str
        payment_id = self.payment_id

        reason: str = self.reason

        status: str = self.status

        to = self.to

        tx_id = self.tx_id


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "amount": amount,
            "blockNum": block_num,
            "blockTime": block_time,
            "from": from_,
            "handledAt": handled_at,
            "handledBy": handled_by,
            "id": id,
            "memo": memo,
            "note": note,
            "opIndex": op_index,
            "paymentId": payment_id,
            "reason": reason,
            "status": status,
            "to": to,
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




        from_ = d.pop("from")

        def _parse_handled_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                handled_at_type_0 = datetime.datetime.fromisoformat(data)



                return handled_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        handled_at = _parse_handled_at(d.pop("handledAt"))


        def _parse_handled_by(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        handled_by = _parse_handled_by(d.pop("handledBy"))


        id = d.pop("id")

        memo = d.pop("memo")

        def _parse_note(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        note = _parse_note(d.pop("note"))


        op_index = d.pop("opIndex")

        def _parse_payment_id(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        payment_id = _parse_payment_id(d.pop("paymentId"))


        reason = check_unmatched_reason(d.pop("reason"))




        status = check_unmatched_status(d.pop("status"))




        to = d.pop("to")

        tx_id = d.pop("txId")

        unmatched = cls(
            amount=amount,
            block_num=block_num,
            block_time=block_time,
            from_=from_,
            handled_at=handled_at,
            handled_by=handled_by,
            id=id,
            memo=memo,
            note=note,
            op_index=op_index,
            payment_id=payment_id,
            reason=reason,
            status=status,
            to=to,
            tx_id=tx_id,
        )

        return unmatched

