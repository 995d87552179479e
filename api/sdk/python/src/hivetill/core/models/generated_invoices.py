from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
  from ..models.generated_invoices_details_item import GeneratedInvoicesDetailsItem





T = TypeVar("T", bound="GeneratedInvoices")



@_attrs_define
class GeneratedInvoices:
    """ 
        Attributes:
            details (list[GeneratedInvoicesDetailsItem]): One entry for each invoice.
            invoices_generated (int): The number of invoices created.
            total_billed_cents (int): Their sum in US cents.
     """

    details: list[GeneratedInvoicesDetailsItem]
    invoices_generated: int
    total_billed_cents: int





    def to_dict(self) -> dict[str, Any]:
        from ..models.generated_invoices_details_item import GeneratedInvoicesDetailsItem # noqa: PLC0415
        details = []
        for details_item_data in self.details:
            details_item = details_item_data.to_dict()
            details.append(details_item)



        invoices_generated = self.invoices_generated

        total_billed_cents = self.total_billed_cents


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "details": details,
            "invoicesGenerated": invoices_generated,
            "totalBilledCents": total_billed_cents,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.generated_invoices_details_item import GeneratedInvoicesDetailsItem # noqa: PLC0415
        d = dict(src_dict)
        details = []
        _details = d.pop("details")
        for details_item_data in (_details):
            details_item = GeneratedInvoicesDetailsItem.from_dict(details_item_data)



            details.append(details_item)


        invoices_generated = d.pop("invoicesGenerated")

        total_billed_cents = d.pop("totalBilledCents")

        generated_invoices = cls(
            details=details,
            invoices_generated=invoices_generated,
            total_billed_cents=total_billed_cents,
        )

        return generated_invoices

