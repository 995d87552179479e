from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
  from ..models.sum_ import Sum





T = TypeVar("T", bound="ReconciliationDayFindingsItemExtraItem")



@_attrs_define
class ReconciliationDayFindingsItemExtraItem:
    """ 
        Attributes:
            amount (Sum): An amount of a transfer or refund.
            tx_id (str): The id of the transaction on the ledger.
     """

    amount: Sum
    tx_id: str





    def to_dict(self) -> dict[str, Any]:
        from ..models.sum_ import Sum # noqa: PLC0415
        amount = self.amount.to_dict()

        tx_id = self.tx_id


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "amount": amount,
            "txId": tx_id,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.sum_ import Sum # noqa: PLC0415
        d = dict(src_dict)
        amount = Sum.from_dict(d.pop("amount"))




        tx_id = d.pop("txId")

        reconciliation_day_findings_item_extra_item = cls(
            amount=amount,
            tx_id=tx_id,
        )

        return reconciliation_day_findings_item_extra_item

