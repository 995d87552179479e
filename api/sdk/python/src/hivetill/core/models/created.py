from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.created_currency import check_created_currency
from ..models.created_currency import CreatedCurrency
from ..models.created_status import check_created_status
from ..models.created_status import CreatedStatus
from typing import cast
import datetime

if TYPE_CHECKING:
  from ..models.amount import Amount





T = TypeVar("T", bound="Created")



@_attrs_define
class Created:
    """ A new payment.

        Attributes:
            amount (Amount): An amount with its value in US cents.
            amount_formatted (str): Alias of `amount.formatted`.
            checkout_url (str): The URL to redirect the customer to. It contains the public id.
            created_at (datetime.datetime): When it was created.
            currency (CreatedCurrency): The currency of the ledger.
            description (str): What the customer buys.
            expires_at (datetime.datetime): When the payment expires. A transfer in a block up to this time counts, even if
                it is seen later.
            fee (str): The fee of the service in the smallest unit, rounded down. It is fixed at creation.
            id (str): The id of the payment. It is public: the memo of the transfer contains it.
            net (str): The amount without the fee, in the smallest unit.
            precision (int): The number of decimals of the currency.
            slug (str): The secret part of `slugUrl`: 128 random bits.
            slug_url (str): The secret URL of the same page. It shows the receipt; agents pay it by x402.
            status (CreatedStatus): `pending` for a new payment. For a repeated creation (`Idempotent-Replayed: true`) the
                state the payment is in now.
            usd_equivalent_cents (int): Alias of `amount.usdCents`.
     """

    amount: Amount
    amount_formatted: str
    checkout_url: str
    created_at: datetime.datetime
    currency: CreatedCurrency
    description: str
    expires_at: datetime.datetime
    fee: str
    id: str
    net: str
    precision: int
    slug: str
    slug_url: str
    status: CreatedStatus
    usd_equivalent_cents: int





    def to_dict(self) -> dict[str, Any]:
        from ..models.amount import Amount # noqa: PLC0415
        amount = self.amount.to_dict()

        amount_formatted = self.amount_formatted

        checkout_url = self.checkout_url

        created_at = self.created_at.isoformat()

        currency: str = self.currency

        description = self.description

        expires_at = self.expires_at.isoformat()

        fee = self.fee

        id = self.id

        net = self.net

        precision = self.precision

        slug = self.slug

        slug_url = self.slug_url

        status: str = self.status

        usd_equivalent_cents = self.usd_equivalent_cents


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "amount": amount,
            "amountFormatted": amount_formatted,
            "checkoutUrl": checkout_url,
            "createdAt": created_at,
            "currency": currency,
            "description": description,
            "expiresAt": expires_at,
            "fee": fee,
            "id": id,
            "net": net,
            "precision": precision,
            "slug": slug,
            "slugUrl": slug_url,
            "status": status,
            "usdEquivalentCents": usd_equivalent_cents,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.amount import Amount # noqa: PLC0415
        d = dict(src_dict)
        amount = Amount.from_dict(d.pop("amount"))




        amount_formatted = d.pop("amountFormatted")

        checkout_url = d.pop("checkoutUrl")

        created_at = datetime.datetime.fromisoformat(d.pop("createdAt"))




        currency = check_created_currency(d.pop("currency"))




        description = d.pop("description")

        expires_at = datetime.datetime.fromisoformat(d.pop("expiresAt"))




        fee = d.pop("fee")

        id = d.pop("id")

        net = d.pop("net")

        precision = d.pop("precision")

        slug = d.pop("slug")

        slug_url = d.pop("slugUrl")

        status = check_created_status(d.pop("status"))




        usd_equivalent_cents = d.pop("usdEquivalentCents")

        created = cls(
            amount=amount,
            amount_formatted=amount_formatted,
            checkout_url=checkout_url,
            created_at=created_at,
            currency=currency,
            description=description,
            expires_at=expires_at,
            fee=fee,
            id=id,
            net=net,
            precision=precision,
            slug=slug,
            slug_url=slug_url,
            status=status,
            usd_equivalent_cents=usd_equivalent_cents,
        )

        return created

