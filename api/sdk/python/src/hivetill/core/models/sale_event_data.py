from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.sale_event_data_currency import check_sale_event_data_currency
from ..models.sale_event_data_currency import SaleEventDataCurrency
from ..types import UNSET, Unset
from typing import cast






T = TypeVar("T", bound="SaleEventData")



@_attrs_define
class SaleEventData:
    """ 
        Attributes:
            currency (SaleEventDataCurrency): The currency of the ledger.
            formatted (str): What was paid, as the ledger writes it.
            livemode (bool): Whether the payment uses real money: true only on the main network.
            merchant_id (str): The id of the merchant.
            pay_to (str): The Hive account that is paid. It is fixed at creation.
            payer (str): The account that pays. Present after its signatures were verified.
            resource (str): What was sold: the resource that the seller named when it settled.
            tx_id (str): The id of the transaction on the ledger.
            value (str): What was paid, in the smallest unit.
            block_num (int | Unset): The number of the block.
     """

    currency: SaleEventDataCurrency
    formatted: str
    livemode: bool
    merchant_id: str
    pay_to: str
    payer: str
    resource: str
    tx_id: str
    value: str
    block_num: int | Unset = UNSET





    def to_dict(self) -> dict[str, Any]:
        currency: str = self.currency

        formatted = self.formatted

        livemode = self.livemode

        merchant_id = self.merchant_id

        pay_to = self.pay_to

        payer = self.payer

        resource = self.resource

        tx_id = self.tx_id

        value = self.value

        block_num = self.block_num


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "currency": currency,
            "formatted": formatted,
            "livemode": livemode,
            "merchantId": merchant_id,
            "payTo": pay_to,
            "payer": payer,
            "resource": resource,
            "txId": tx_id,
            "value": value,
        })
        if block_num is not UNSET:
            field_dict["blockNum"] = block_num

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        currency = check_sale_event_data_currency(d.pop("currency"))




        formatted = d.pop("formatted")

        livemode = d.pop("livemode")

        merchant_id = d.pop("merchantId")

        pay_to = d.pop("payTo")

        payer = d.pop("payer")

        resource = d.pop("resource")

        tx_id = d.pop("txId")

        value = d.pop("value")

        block_num = d.pop("blockNum", UNSET)

        sale_event_data = cls(
            currency=currency,
            formatted=formatted,
            livemode=livemode,
            merchant_id=merchant_id,
            pay_to=pay_to,
            payer=payer,
            resource=resource,
            tx_id=tx_id,
            value=value,
            block_num=block_num,
        )

        return sale_event_data

