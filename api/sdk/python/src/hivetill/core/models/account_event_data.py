from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.account_event_data_change import AccountEventDataChange
from ..models.account_event_data_change import check_account_event_data_change
from ..types import UNSET, Unset
from typing import cast
import datetime






T = TypeVar("T", bound="AccountEventData")



@_attrs_define
class AccountEventData:
    """ 
        Attributes:
            change (AccountEventDataChange): What happened to the change of the Hive account.
            hive_account (str): The Hive account that is paid.
            livemode (bool): Whether the payment uses real money: true only on the main network.
            merchant_id (str): The id of the merchant.
            effective_at (datetime.datetime | Unset): The earliest time the change takes effect.
            pending_account (str | Unset): The account that will be paid.
     """

    change: AccountEventDataChange
    hive_account: str
    livemode: bool
    merchant_id: str
    effective_at: datetime.datetime | Unset = UNSET
    pending_account: str | Unset = UNSET





    def to_dict(self) -> dict[str, Any]:
        change: str = self.change

        hive_account = self.hive_account

        livemode = self.livemode

        merchant_id = self.merchant_id

        effective_at: str | Unset = UNSET
        if not isinstance(self.effective_at, Unset):
            effective_at = self.effective_at.isoformat()

        pending_account = self.pending_account


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "change": change,
            "hiveAccount": hive_account,
            "livemode": livemode,
            "merchantId": merchant_id,
        })
        if effective_at is not UNSET:
            field_dict["effectiveAt"] = effective_at
        if pending_account is not UNSET:
            field_dict["pendingAccount"] = pending_account

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        change = check_account_event_data_change(d.pop("change"))




        hive_account = d.pop("hiveAccount")

        livemode = d.pop("livemode")

        merchant_id = d.pop("merchantId")

        _effective_at = d.pop("effectiveAt", UNSET)
        effective_at: datetime.datetime | Unset
        if isinstance(_effective_at,  Unset):
            effective_at = UNSET
        else:
            effective_at = datetime.datetime.fromisoformat(_effective_at)




        pending_account = d.pop("pendingAccount", UNSET)

        account_event_data = cls(
            change=change,
            hive_account=hive_account,
            livemode=livemode,
            merchant_id=merchant_id,
            effective_at=effective_at,
            pending_account=pending_account,
        )

        return account_event_data

