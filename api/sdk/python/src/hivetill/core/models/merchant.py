from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.merchant_account_verification import check_merchant_account_verification
from ..models.merchant_account_verification import MerchantAccountVerification
from ..models.merchant_account_verified_by_type_1 import check_merchant_account_verified_by_type_1
from ..models.merchant_account_verified_by_type_1 import MerchantAccountVerifiedByType1
from ..models.merchant_account_verified_by_type_2_type_1 import check_merchant_account_verified_by_type_2_type_1
from ..models.merchant_account_verified_by_type_2_type_1 import MerchantAccountVerifiedByType2Type1
from ..models.merchant_account_verified_by_type_3_type_1 import check_merchant_account_verified_by_type_3_type_1
from ..models.merchant_account_verified_by_type_3_type_1 import MerchantAccountVerifiedByType3Type1
from ..models.merchant_network import check_merchant_network
from ..models.merchant_network import MerchantNetwork
from ..models.merchant_privileges_item import check_merchant_privileges_item
from ..models.merchant_privileges_item import MerchantPrivilegesItem
from ..models.merchant_webhook_events_item import check_merchant_webhook_events_item
from ..models.merchant_webhook_events_item import MerchantWebhookEventsItem
from ..types import UNSET, Unset
from typing import cast
import datetime

if TYPE_CHECKING:
  from ..models.pending_account import PendingAccount





T = TypeVar("T", bound="Merchant")



@_attrs_define
class Merchant:
    """ 
        Attributes:
            account_verification (MerchantAccountVerification): Whether ownership of the Hive account is proven; `stale`
                after the account's active authority changed.
            account_verified (bool): Whether the merchant has proven ownership of the account.
            account_verified_at (datetime.datetime | None): When it was proven.
            account_verified_by (MerchantAccountVerifiedByType1 | MerchantAccountVerifiedByType2Type1 |
                MerchantAccountVerifiedByType3Type1 | None): How it was proven.
            active (bool): Alias of `isActive`.
            api_key_created_at (datetime.datetime): When the newest API key was created.
            api_key_last_4 (str): The last four characters of the newest API key.
            api_key_last_used_at (datetime.datetime | None): When a key was last used, to the minute.
            created_at (datetime.datetime): When it was created.
            hive_account (str): The Hive account that receives the payments.
            hive_account_name (str): Alias of `hiveAccount`.
            id (str): The id of the merchant.
            is_active (bool): Whether the merchant may create payments.
            livemode (bool): Whether the payment uses real money: true only on the main network.
            name (str): The business name.
            network (MerchantNetwork): The Hive network that the gateway follows.
            pending_account (None | PendingAccount): The pending change of the Hive account; `null` if there is none.
            privileges (list[MerchantPrivilegesItem]): The additional privileges of the merchant.
            restart_enabled (bool): Whether customers may start an expired payment again. A new merchant has `false`.
            support_url (None | str): Where customers find help.
            webhook_events (list[MerchantWebhookEventsItem]): The types of events that are sent to `webhookUrl`.
            x_402_enabled (bool): Whether programs may pay this merchant's payments by x402.
            flagged (bool | Unset): Whether the merchant is on a compliance hold; for admins only.
            icon_url (str | Unset): The logo; absent if there is none.
            webhook_url (str | Unset): Where events are sent; absent if none is set.
     """

    account_verification: MerchantAccountVerification
    account_verified: bool
    account_verified_at: datetime.datetime | None
    account_verified_by: MerchantAccountVerifiedByType1 | MerchantAccountVerifiedByType2Type1 | MerchantAccountVerifiedByType3Type1 | None
    active: bool
    api_key_created_at: datetime.datetime
    api_key_last_4: str
    api_key_last_used_at: datetime.datetime | None
    created_at: datetime.datetime
    hive_account: str
    hive_account_name: str
    id: str
    is_active: bool
    livemode: bool
    name: str
    network: MerchantNetwork
    pending_account: None | PendingAccount
    privileges: list[MerchantPrivilegesItem]
    restart_enabled: bool
    support_url: None | str
    webhook_events: list[MerchantWebhookEventsItem]
    x_402_enabled: bool
    flagged: bool | Unset = UNSET
    icon_url: str | Unset = UNSET
    webhook_url: str | Unset = UNSET





    def to_dict(self) -> dict[str, Any]:
        from ..models.pending_account import PendingAccount # noqa: PLC0415
        account_verification: str = self.account_verification

        account_verified = self.account_verified

        account_verified_at: None | str
        if isinstance(self.account_verified_at, datetime.datetime):
            account_verified_at = self.account_verified_at.isoformat()
        else:
            account_verified_at = self.account_verified_at

        account_verified_by: None | str
        if isinstance(self.account_verified_by, str):
            account_verified_by = self.account_verified_by
        elif isinstance(self.account_verified_by, str):
            account_verified_by = self.account_verified_by
        elif isinstance(self.account_verified_by, str):
            account_verified_by = self.account_verified_by
        else:
            account_verified_by = self.account_verified_by

        active = self.active

        api_key_created_at = self.api_key_created_at.isoformat()

        api_key_last_4 = self.api_key_last_4

        api_key_last_used_at: None | str
        if isinstance(self.api_key_last_used_at, datetime.datetime):
            api_key_last_used_at = self.api_key_last_used_at.isoformat()
        else:
            api_key_last_used_at = self.api_key_last_used_at

        created_at = self.created_at.isoformat()

        hive_account = self.hive_account

        hive_account_name = self.hive_account_name

        id = self.id

        is_active = self.is_active

        livemode = self.livemode

        name = self.name

        network: str = self.network

        pending_account: dict[str, Any] | None
        if isinstance(self.pending_account, PendingAccount):
            pending_account = self.pending_account.to_dict()
        else:
            pending_account = self.pending_account

        privileges = []
        for privileges_item_data in self.privileges:
            privileges_item: str = privileges_item_data
            privileges.append(privileges_item)



        restart_enabled = self.restart_enabled

        support_url: None | str
        support_url = self.support_url

        webhook_events = []
        for webhook_events_item_data in self.webhook_events:
            webhook_events_item: str = webhook_events_item_data
            webhook_events.append(webhook_events_item)



        x_402_enabled = self.x_402_enabled

        flagged = self.flagged

        icon_url = self.icon_url

        webhook_url = self.webhook_url


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "accountVerification": account_verification,
            "accountVerified": account_verified,
            "accountVerifiedAt": account_verified_at,
            "accountVerifiedBy": account_verified_by,
            "active": active,
            "apiKeyCreatedAt": api_key_created_at,
            "apiKeyLast4": api_key_last_4,
            "apiKeyLastUsedAt": api_key_last_used_at,
            "createdAt": created_at,
            "hiveAccount": hive_account,
            "hiveAccountName": hive_account_name,
            "id": id,
            "isActive": is_active,
            "livemode": livemode,
            "name": name,
            "network": network,
            "pendingAccount": pending_account,
            "privileges": privileges,
            "restartEnabled": restart_enabled,
            "supportUrl": support_url,
            "webhookEvents": webhook_events,
            "x402Enabled": x_402_enabled,
        })
        if flagged is not UNSET:
            field_dict["flagged"] = flagged
        if icon_url is not UNSET:
            field_dict["iconUrl"] = icon_url
        if webhook_url is not UNSET:
            field_dict["webhookUrl"] = webhook_url

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.pending_account import PendingAccount # noqa: PLC0415
        d = dict(src_dict)
        account_verification = check_merchant_account_verification(d.pop("accountVerification"))




        account_verified = d.pop("accountVerified")

        def _parse_account_verified_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                account_verified_at_type_0 = datetime.datetime.fromisoformat(data)



                return account_verified_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        account_verified_at = _parse_account_verified_at(d.pop("accountVerifiedAt"))


        def _parse_account_verified_by(data: object) -> MerchantAccountVerifiedByType1 | MerchantAccountVerifiedByType2Type1 | MerchantAccountVerifiedByType3Type1 | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                account_verified_by_type_1 = check_merchant_account_verified_by_type_1(data)



                return account_verified_by_type_1
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            try:
                if not isinstance(data, str):
                    raise TypeError()
                account_verified_by_type_2_type_1 = check_merchant_account_verified_by_type_2_type_1(data)



                return account_verified_by_type_2_type_1
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            try:
                if not isinstance(data, str):
                    raise TypeError()
                account_verified_by_type_3_type_1 = check_merchant_account_verified_by_type_3_type_1(data)



                return account_verified_by_type_3_type_1
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(MerchantAccountVerifiedByType1 | MerchantAccountVerifiedByType2Type1 | MerchantAccountVerifiedByType3Type1 | None, data)

        account_verified_by = _parse_account_verified_by(d.pop("accountVerifiedBy"))


        active = d.pop("active")

        api_key_created_at = datetime.datetime.fromisoformat(d.pop("apiKeyCreatedAt"))




        api_key_last_4 = d.pop("apiKeyLast4")

        def _parse_api_key_last_used_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                api_key_last_used_at_type_0 = datetime.datetime.fromisoformat(data)



                return api_key_last_used_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        api_key_last_used_at = _parse_api_key_last_used_at(d.pop("apiKeyLastUsedAt"))


        created_at = datetime.datetime.fromisoformat(d.pop("createdAt"))




        hive_account = d.pop("hiveAccount")

        hive_account_name = d.pop("hiveAccountName")

        id = d.pop("id")

        is_active = d.pop("isActive")

        livemode = d.pop("livemode")

        name = d.pop("name")

        network = check_merchant_network(d.pop("network"))




        def _parse_pending_account(data: object) -> None | PendingAccount:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                pending_account_type_0 = PendingAccount.from_dict(data)



                return pending_account_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | PendingAccount, data)

        pending_account = _parse_pending_account(d.pop("pendingAccount"))


        privileges = []
        _privileges = d.pop("privileges")
        for privileges_item_data in (_privileges):
            privileges_item = check_merchant_privileges_item(privileges_item_data)



            privileges.append(privileges_item)


        restart_enabled = d.pop("restartEnabled")

        def _parse_support_url(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        support_url = _parse_support_url(d.pop("supportUrl"))


        webhook_events = []
        _webhook_events = d.pop("webhookEvents")
        for webhook_events_item_data in (_webhook_events):
            webhook_events_item = check_merchant_webhook_events_item(webhook_events_item_data)



            webhook_events.append(webhook_events_item)


        x_402_enabled = d.pop("x402Enabled")

        flagged = d.pop("flagged", UNSET)

        icon_url = d.pop("iconUrl", UNSET)

        webhook_url = d.pop("webhookUrl", UNSET)

        merchant = cls(
            account_verification=account_verification,
            account_verified=account_verified,
            account_verified_at=account_verified_at,
            account_verified_by=account_verified_by,
            active=active,
            api_key_created_at=api_key_created_at,
            api_key_last_4=api_key_last_4,
            api_key_last_used_at=api_key_last_used_at,
            created_at=created_at,
            hive_account=hive_account,
            hive_account_name=hive_account_name,
            id=id,
            is_active=is_active,
            livemode=livemode,
            name=name,
            network=network,
            pending_account=pending_account,
            privileges=privileges,
            restart_enabled=restart_enabled,
            support_url=support_url,
            webhook_events=webhook_events,
            x_402_enabled=x_402_enabled,
            flagged=flagged,
            icon_url=icon_url,
            webhook_url=webhook_url,
        )

        return merchant

