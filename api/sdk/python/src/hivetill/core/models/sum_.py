from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.sum_currency import check_sum_currency
from ..models.sum_currency import SumCurrency
from typing import cast






T = TypeVar("T", bound="Sum")



@_attrs_define
class Sum:
    """ An amount of a transfer or refund.

        Attributes:
            currency (SumCurrency): The currency of the ledger.
            formatted (str): The amount with three decimals and its currency, as the ledger writes it.
            value (str): The amount in the smallest unit, 1/1000 of the currency.
     """

    currency: SumCurrency
    formatted: str
    value: str





    def to_dict(self) -> dict[str, Any]:
        currency: str = self.currency

        formatted = self.formatted

        value = self.value


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "currency": currency,
            "formatted": formatted,
            "value": value,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        currency = check_sum_currency(d.pop("currency"))




        formatted = d.pop("formatted")

        value = d.pop("value")

        sum_ = cls(
            currency=currency,
            formatted=formatted,
            value=value,
        )

        return sum_

