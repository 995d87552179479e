from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset







T = TypeVar("T", bound="CreatedShort")



@_attrs_define
class CreatedShort:
    """ The short form of a new payment: its slug and its URL, each under two names.

        Attributes:
            checkout_url (str): The URL to redirect the customer to. It contains the public id.
            id (str): The id of the payment.
            redirect_url (str): The URL to redirect the customer to.
            slug (str): The secret part of `slugUrl`: 128 random bits.
     """

    checkout_url: str
    id: str
    redirect_url: str
    slug: str





    def to_dict(self) -> dict[str, Any]:
        checkout_url = self.checkout_url

        id = self.id

        redirect_url = self.redirect_url

        slug = self.slug


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "checkoutUrl": checkout_url,
            "id": id,
            "redirectUrl": redirect_url,
            "slug": slug,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        checkout_url = d.pop("checkoutUrl")

        id = d.pop("id")

        redirect_url = d.pop("redirectUrl")

        slug = d.pop("slug")

        created_short = cls(
            checkout_url=checkout_url,
            id=id,
            redirect_url=redirect_url,
            slug=slug,
        )

        return created_short

