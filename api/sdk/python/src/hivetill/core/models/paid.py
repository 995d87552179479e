from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.paid_status import check_paid_status
from ..models.paid_status import PaidStatus
from ..types import UNSET, Unset
from typing import cast






T = TypeVar("T", bound="Paid")



@_attrs_define
class Paid:
    """ 
        Attributes:
            payer (str): The account that pays. Present after its signatures were verified.
            session_id (str): The id of the payment.
            status (PaidStatus): The state of the payment.
            success (bool): Whether the payment succeeded.
            tx_id (str): The id of the transaction on the ledger.
            replayed (bool | Unset): Whether an earlier request contained this payment.
     """

    payer: str
    session_id: str
    status: PaidStatus
    success: bool
    tx_id: str
    replayed: bool | Unset = UNSET





    def to_dict(self) -> dict[str, Any]:
        payer = self.payer

        session_id = self.session_id

        status: str = self.status

        success = self.success

        tx_id = self.tx_id

        replayed = self.replayed


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "payer": payer,
            "sessionId": session_id,
            "status": status,
            "success": success,
            "txId": tx_id,
        })
        if replayed is not UNSET:
            field_dict["replayed"] = replayed

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        payer = d.pop("payer")

        session_id = d.pop("sessionId")

        status = check_paid_status(d.pop("status"))




        success = d.pop("success")

        tx_id = d.pop("txId")

        replayed = d.pop("replayed", UNSET)

        paid = cls(
            payer=payer,
            session_id=session_id,
            status=status,
            success=success,
            tx_id=tx_id,
            replayed=replayed,
        )

        return paid

