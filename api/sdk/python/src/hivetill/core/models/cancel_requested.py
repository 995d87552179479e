from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.cancel_requested_status import CancelRequestedStatus
from ..models.cancel_requested_status import check_cancel_requested_status
from typing import cast






T = TypeVar("T", bound="CancelRequested")



@_attrs_define
class CancelRequested:
    """ The status of a payment whose cancellation was requested, limited to what a visitor of its page may see.

        Attributes:
            cancel_requested (bool): Whether a request to cancel is undecided or in force.
            id (str): The id of the payment.
            status (CancelRequestedStatus): The state: `pending` until the cancellation is decided.
     """

    cancel_requested: bool
    id: str
    status: CancelRequestedStatus





    def to_dict(self) -> dict[str, Any]:
        cancel_requested = self.cancel_requested

        id = self.id

        status: str = self.status


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "cancelRequested": cancel_requested,
            "id": id,
            "status": status,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        cancel_requested = d.pop("cancelRequested")

        id = d.pop("id")

        status = check_cancel_requested_status(d.pop("status"))




        cancel_requested = cls(
            cancel_requested=cancel_requested,
            id=id,
            status=status,
        )

        return cancel_requested

