from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset






T = TypeVar("T", bound="PaymentRequiredAcceptsItemExtra")



@_attrs_define
class PaymentRequiredAcceptsItemExtra:
    """ Additional requirements for the transfer.

        Attributes:
            memo (str): The memo of the transfer. It identifies the payment.
            session_id (str): The id of the payment.
            fee_account (str | Unset): The account that collects the fee, where the fee is collected with the payment.
            fee_amount (str | Unset): The fee paid to that account.
            fee_memo (str | Unset): The memo of the fee's transfer.
            net_amount (str | Unset): The amount paid to the merchant.
     """

    memo: str
    session_id: str
    fee_account: str | Unset = UNSET
    fee_amount: str | Unset = UNSET
    fee_memo: str | Unset = UNSET
    net_amount: str | Unset = UNSET





    def to_dict(self) -> dict[str, Any]:
        memo = self.memo

        session_id = self.session_id

        fee_account = self.fee_account

        fee_amount = self.fee_amount

        fee_memo = self.fee_memo

        net_amount = self.net_amount


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "memo": memo,
            "sessionId": session_id,
        })
        if fee_account is not UNSET:
            field_dict["feeAccount"] = fee_account
        if fee_amount is not UNSET:
            field_dict["feeAmount"] = fee_amount
        if fee_memo is not UNSET:
            field_dict["feeMemo"] = fee_memo
        if net_amount is not UNSET:
            field_dict["netAmount"] = net_amount

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        memo = d.pop("memo")

        session_id = d.pop("sessionId")

        fee_account = d.pop("feeAccount", UNSET)

        fee_amount = d.pop("feeAmount", UNSET)

        fee_memo = d.pop("feeMemo", UNSET)

        net_amount = d.pop("netAmount", UNSET)

        payment_required_accepts_item_extra = cls(
            memo=memo,
            session_id=session_id,
            fee_account=fee_account,
            fee_amount=fee_amount,
            fee_memo=fee_memo,
            net_amount=net_amount,
        )

        return payment_required_accepts_item_extra

