from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.candidates_data_item_matches_item import CandidatesDataItemMatchesItem
from ..models.candidates_data_item_matches_item import check_candidates_data_item_matches_item
from typing import cast

if TYPE_CHECKING:
  from ..models.payment import Payment





T = TypeVar("T", bound="CandidatesDataItem")



@_attrs_define
class CandidatesDataItem:
    """ 
        Attributes:
            matches (list[CandidatesDataItemMatchesItem]): The criteria that match.
            payment (Payment): The whole record of a payment.
     """

    matches: list[CandidatesDataItemMatchesItem]
    payment: Payment





    def to_dict(self) -> dict[str, Any]:
        from ..models.payment import Payment # noqa: PLC0415
        matches = []
        for matches_item_data in self.matches:
            matches_item: str = matches_item_data
            matches.append(matches_item)



        payment = self.payment.to_dict()


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "matches": matches,
            "payment": payment,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.payment import Payment # noqa: PLC0415
        d = dict(src_dict)
        matches = []
        _matches = d.pop("matches")
        for matches_item_data in (_matches):
            matches_item = check_candidates_data_item_matches_item(matches_item_data)



            matches.append(matches_item)


        payment = Payment.from_dict(d.pop("payment"))




        candidates_data_item = cls(
            matches=matches,
            payment=payment,
        )

        return candidates_data_item

