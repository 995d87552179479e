from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
  from ..models.payment import Payment
  from ..models.payment_dossier_timeline_item import PaymentDossierTimelineItem





T = TypeVar("T", bound="PaymentDossier")



@_attrs_define
class PaymentDossier:
    """ 
        Attributes:
            payment (Payment): The whole record of a payment.
            timeline (list[PaymentDossierTimelineItem]): Its history, oldest first.
     """

    payment: Payment
    timeline: list[PaymentDossierTimelineItem]





    def to_dict(self) -> dict[str, Any]:
        from ..models.payment import Payment # noqa: PLC0415
        from ..models.payment_dossier_timeline_item import PaymentDossierTimelineItem # noqa: PLC0415
        payment = self.payment.to_dict()

        timeline = []
        for timeline_item_data in self.timeline:
            timeline_item = timeline_item_data.to_dict()
            timeline.append(timeline_item)




        field_dict: dict[str, Any] = {}

        field_dict.update({
            "payment": payment,
            "timeline": timeline,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.payment import Payment # noqa: PLC0415
        from ..models.payment_dossier_timeline_item import PaymentDossierTimelineItem # noqa: PLC0415
        d = dict(src_dict)
        payment = Payment.from_dict(d.pop("payment"))




        timeline = []
        _timeline = d.pop("timeline")
        for timeline_item_data in (_timeline):
            timeline_item = PaymentDossierTimelineItem.from_dict(timeline_item_data)



            timeline.append(timeline_item)


        payment_dossier = cls(
            payment=payment,
            timeline=timeline,
        )

        return payment_dossier

