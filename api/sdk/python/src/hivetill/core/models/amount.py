from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.amount_currency import AmountCurrency
from ..models.amount_currency import check_amount_currency
from typing import cast






T = TypeVar("T", bound="Amount")



@_attrs_define
class Amount:
    """ An amount with its value in US cents.

        Attributes:
            currency (AmountCurrency): The currency of the ledger.
            formatted (str): The amount with three decimals and its currency, as the ledger writes it.
            usd_cents (int): The value in US cents at the rate of the payment's creation, which never changes. 0 means less
                than half a cent.
            value (str): The amount in the smallest unit, 1/1000 of the currency.
     """

    currency: AmountCurrency
    formatted: str
    usd_cents: int
    value: str





    def to_dict(self) -> dict[str, Any]:
        currency: str = self.currency

        formatted = self.formatted

        usd_cents = self.usd_cents

        value = self.value


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "currency": currency,
            "formatted": formatted,
            "usdCents": usd_cents,
            "value": value,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        currency = check_amount_currency(d.pop("currency"))




        formatted = d.pop("formatted")

        usd_cents = d.pop("usdCents")

        value = d.pop("value")

        amount = cls(
            currency=currency,
            formatted=formatted,
            usd_cents=usd_cents,
            value=value,
        )

        return amount

