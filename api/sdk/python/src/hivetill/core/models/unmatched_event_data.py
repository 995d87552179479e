from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.unmatched_event_data_currency import check_unmatched_event_data_currency
from ..models.unmatched_event_data_currency import UnmatchedEventDataCurrency
from ..models.unmatched_event_data_reason import check_unmatched_event_data_reason
from ..models.unmatched_event_data_reason import UnmatchedEventDataReason
from typing import cast
import datetime






T = TypeVar("T", bound="UnmatchedEventData")



@_attrs_define
class UnmatchedEventData:
    """ 
        Attributes:
            block_num (int): The number of the block.
            block_time (datetime.datetime): The time of the block.
            currency (UnmatchedEventDataCurrency): The currency of the ledger.
            formatted (str): What was sent, as the ledger writes it.
            from_ (str): The account that sent it.
            livemode (bool): Whether the payment uses real money: true only on the main network.
            memo (str): The memo of the transfer.
            merchant_id (str): The id of the merchant.
            op_index (int): The place of the transfer among the operations of its transaction, from 0.
            reason (UnmatchedEventDataReason): Why it matches no payment.
            to (str): The account that received it.
            transfer_id (str): The id of the unmatched transfer.
            tx_id (str): The id of the transaction on the ledger.
            value (str): What was sent, in the smallest unit.
     """

    block_num: int
    block_time: datetime.datetime
    currency: UnmatchedEventDataCurrency
    formatted: str
    from_: str
    livemode: bool
    memo: str
    merchant_id: str
    op_index: int
    reason: UnmatchedEventDataReason
    to: str
    transfer_id: str
    tx_id: str
    value: str





    def to_dict(self) -> dict[str, Any]:
        block_num = self.block_num

        block_time = self.block_time.isoformat()

        currency: str = self.currency

        formatted = self.formatted

        from_ = self.from_

        livemode = self.livemode

        memo = self.memo

        merchant_id = self.merchant_id

        op_index = self.op_index

        reason: str = self.reason

        to = self.to

        transfer_id = self.transfer_id

        tx_id = self.tx_id

        value = self.value


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "blockNum": block_num,
            "blockTime": block_time,
            "currency": currency,
            "formatted": formatted,
            "from": from_,
            "livemode": livemode,
            "memo": memo,
            "merchantId": merchant_id,
            "opIndex": op_index,
            "reason": reason,
            "to": to,
            "transferId": transfer_id,
            "txId": tx_id,
            "value": value,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        block_num = d.pop("blockNum")

        block_time = datetime.datetime.fromisoformat(d.pop("blockTime"))




        currency = check_unmatched_event_data_currency(d.pop("currency"))




        formatted = d.pop("formatted")

        from_ = d.pop("from")

        livemode = d.pop("livemode")

        memo = d.pop("memo")

        merchant_id = d.pop("merchantId")

        op_index = d.pop("opIndex")

        reason = check_unmatched_event_data_reason(d.pop("reason"))




        to = d.pop("to")

        transfer_id = d.pop("transferId")

        tx_id = d.pop("txId")

        value = d.pop("value")

        unmatched_event_data = cls(
            block_num=block_num,
            block_time=block_time,
            currency=currency,
            formatted=formatted,
            from_=from_,
            livemode=livemode,
            memo=memo,
            merchant_id=merchant_id,
            op_index=op_index,
            reason=reason,
            to=to,
            transfer_id=transfer_id,
            tx_id=tx_id,
            value=value,
        )

        return unmatched_event_data

