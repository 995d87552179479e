from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.payment_event_data_refund_currency import check_payment_event_data_refund_currency
from ..models.payment_event_data_refund_currency import PaymentEventDataRefundCurrency
from typing import cast
import datetime






T = TypeVar("T", bound="PaymentEventDataRefund")



@_attrs_define
class PaymentEventDataRefund:
    """ Only in `refund.completed`: the refund.

        Attributes:
            at (datetime.datetime): The block time of the refund.
            currency (PaymentEventDataRefundCurrency): The currency of the ledger.
            formatted (str): What was refunded, as the ledger writes it.
            op_index (int): The place of the transfer among the operations of its transaction, from 0.
            to (str): The account that was refunded.
            tx_id (str): The transaction of the refund.
            value (str): What was refunded, in the smallest unit.
     """

    at: datetime.datetime
    currency: PaymentEventDataRefundCurrency
    formatted: str
    op_index: int
    to: str
    tx_id: str
    value: str





    def to_dict(self) -> dict[str, Any]:
        at = self.at.isoformat()

        currency: str = self.currency

        formatted = self.formatted

        op_index = self.op_index

        to = self.to

        tx_id = self.tx_id

        value = self.value


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "at": at,
            "currency": currency,
            "formatted": formatted,
            "opIndex": op_index,
            "to": to,
            "txId": tx_id,
            "value": value,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        at = datetime.datetime.fromisoformat(d.pop("at"))




        currency = check_payment_event_data_refund_currency(d.pop("currency"))




        formatted = d.pop("formatted")

        op_index = d.pop("opIndex")

        to = d.pop("to")

        tx_id = d.pop("txId")

        value = d.pop("value")

        payment_event_data_refund = cls(
            at=at,
            currency=currency,
            formatted=formatted,
            op_index=op_index,
            to=to,
            tx_id=tx_id,
            value=value,
        )

        return payment_event_data_refund

