from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.payment_resolution_type_0_kind import check_payment_resolution_type_0_kind
from ..models.payment_resolution_type_0_kind import PaymentResolutionType0Kind
from typing import cast
import datetime






T = TypeVar("T", bound="PaymentResolutionType0")



@_attrs_define
class PaymentResolutionType0:
    """ What was decided about the exceptions; `null` before.

        Attributes:
            at (datetime.datetime): When it was decided.
            by (str): The API key that was used.
            kind (PaymentResolutionType0Kind): The decision.
            note (str): A note for yourself.
            tx_id (None | str): The transaction of a refund, where one was named.
     """

    at: datetime.datetime
    by: str
    kind: PaymentResolutionType0Kind
    note: str
    tx_id: None | str





    def to_dict(self) -> dict[str, Any]:
        at = self.at.isoformat()

        by = self.by

        kind: str = self.kind

        note = self.note

        tx_id: None | str
        tx_id = self.tx_id


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "at": at,
            "by": by,
            "kind": kind,
            "note": note,
            "txId": tx_id,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        at = datetime.datetime.fromisoformat(d.pop("at"))




        by = d.pop("by")

        kind = check_payment_resolution_type_0_kind(d.pop("kind"))




        note = d.pop("note")

        def _parse_tx_id(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        tx_id = _parse_tx_id(d.pop("txId"))


        payment_resolution_type_0 = cls(
            at=at,
            by=by,
            kind=kind,
            note=note,
            tx_id=tx_id,
        )

        return payment_resolution_type_0

