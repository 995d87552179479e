from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.create_payment_currency import check_create_payment_currency
from ..models.create_payment_currency import CreatePaymentCurrency
from ..types import UNSET, Unset
from typing import cast

if TYPE_CHECKING:
  from ..models.metadata import Metadata





T = TypeVar("T", bound="CreatePayment")



@_attrs_define
class CreatePayment:
    """ 
        Attributes:
            amount (str): The amount in the smallest unit, 1/1000 of the currency: `"1500"` with `"HBD"` is 1.500 HBD. From
                1 to 1,000,000,000.
            currency (CreatePaymentCurrency): The currency of the ledger.
            description (str): What the customer buys. The checkout page shows it.
            cancel_url (None | str | Unset): Where the checkout page redirects after the payment is cancelled or expired:
                https, or http to `localhost`.
            expires_in_seconds (int | Unset): How long the customer has to pay. Default: 30 minutes.
            metadata (Metadata | Unset): Data of the merchant: up to 50 keys, each with a text or a list of texts.
            redirect_url (None | str | Unset): Where the checkout page redirects after the payment is completed: https, or
                http to `localhost`.
     """

    amount: str
    currency: CreatePaymentCurrency
    description: str
    cancel_url: None | str | Unset = UNSET
    expires_in_seconds: int | Unset = UNSET
    metadata: Metadata | Unset = UNSET
    redirect_url: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)





    def to_dict(self) -> dict[str, Any]:
        from ..models.metadata import Metadata # noqa: PLC0415
        amount = self.amount

        currency: str = self.currency

        description = self.description

        cancel_url: None | str | Unset
        if isinstance(self.cancel_url, Unset):
            cancel_url = UNSET
        else:
            cancel_url = self.cancel_url

        expires_in_seconds = self.expires_in_seconds

        metadata: dict[str, Any] | Unset = UNSET
        if not isinstance(self.metadata, Unset):
            metadata = self.metadata.to_dict()

        redirect_url: None | str | Unset
        if isinstance(self.redirect_url, Unset):
            redirect_url = UNSET
        else:
            redirect_url = self.redirect_url


        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({
            "amount": amount,
            "currency": currency,
            "description": description,
        })
        if cancel_url is not UNSET:
            field_dict["cancelUrl"] = cancel_url
        if expires_in_seconds is not UNSET:
            field_dict["expiresInSeconds"] = expires_in_seconds
        if metadata is not UNSET:
            field_dict["metadata"] = metadata
        if redirect_url is not UNSET:
            field_dict["redirectUrl"] = redirect_url

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.metadata import Metadata # noqa: PLC0415
        d = dict(src_dict)
        amount = d.pop("amount")

        currency = check_create_payment_currency(d.pop("currency"))




        description = d.pop("description")

        def _parse_cancel_url(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        cancel_url = _parse_cancel_url(d.pop("cancelUrl", UNSET))


        expires_in_seconds = d.pop("expiresInSeconds", UNSET)

        _metadata = d.pop("metadata", UNSET)
        metadata: Metadata | Unset
        if isinstance(_metadata,  Unset):
            metadata = UNSET
        else:
            metadata = Metadata.from_dict(_metadata)




        def _parse_redirect_url(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        redirect_url = _parse_redirect_url(d.pop("redirectUrl", UNSET))


        create_payment = cls(
            amount=amount,
            currency=currency,
            description=description,
            cancel_url=cancel_url,
            expires_in_seconds=expires_in_seconds,
            metadata=metadata,
            redirect_url=redirect_url,
        )


        create_payment.additional_properties = d
        return create_payment

    @property
    def additional_keys(self) -> list[str]:
        return list(self.additional_properties.keys())

    def __getitem__(self, key: str) -> Any:
        return self.additional_properties[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self.additional_properties[key] = value

    def __delitem__(self, key: str) -> None:
        del self.additional_properties[key]

    def __contains__(self, key: str) -> bool:
        return key in self.additional_properties
