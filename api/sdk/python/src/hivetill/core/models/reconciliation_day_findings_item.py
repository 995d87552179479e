from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
  from ..models.reconciliation_day_findings_item_extra_item import ReconciliationDayFindingsItemExtraItem
  from ..models.reconciliation_day_findings_item_missing_item import ReconciliationDayFindingsItemMissingItem





T = TypeVar("T", bound="ReconciliationDayFindingsItem")



@_attrs_define
class ReconciliationDayFindingsItem:
    """ 
        Attributes:
            account (str): The account.
            extra (list[ReconciliationDayFindingsItemExtraItem]): Transfers of the store that the ledger lacks.
            extra_count (int): Their number; the list is truncated.
            merchant_ids (list[str]): The merchants with this account.
            missing (list[ReconciliationDayFindingsItemMissingItem]): Transfers of the ledger that the store lacks.
            missing_count (int): Their number; the list is truncated.
     """

    account: str
    extra: list[ReconciliationDayFindingsItemExtraItem]
    extra_count: int
    merchant_ids: list[str]
    missing: list[ReconciliationDayFindingsItemMissingItem]
    missing_count: int





    def to_dict(self) -> dict[str, Any]:
        from ..models.reconciliation_day_findings_item_extra_item import ReconciliationDayFindingsItemExtraItem # noqa: PLC0415
        from ..models.reconciliation_day_findings_item_missing_item import ReconciliationDayFindingsItemMissingItem # noqa: PLC0415
        account = self.account

        extra = []
        for extra_item_data in self.extra:
            extra_item = extra_item_data.to_dict()
            extra.append(extra_item)



        extra_count = self.extra_count

        merchant_ids = self.merchant_ids



        missing = []
        for missing_item_data in self.missing:
            missing_item = missing_item_data.to_dict()
            missing.append(missing_item)



        missing_count = self.missing_count


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "account": account,
            "extra": extra,
            "extraCount": extra_count,
            "merchantIds": merchant_ids,
            "missing": missing,
            "missingCount": missing_count,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.reconciliation_day_findings_item_extra_item import ReconciliationDayFindingsItemExtraItem # noqa: PLC0415
        from ..models.reconciliation_day_findings_item_missing_item import ReconciliationDayFindingsItemMissingItem # noqa: PLC0415
        d = dict(src_dict)
        account = d.pop("account")

        extra = []
        _extra = d.pop("extra")
        for extra_item_data in (_extra):
            extra_item = ReconciliationDayFindingsItemExtraItem.from_dict(extra_item_data)



            extra.append(extra_item)


        extra_count = d.pop("extraCount")

        merchant_ids = cast(list[str], d.pop("merchantIds"))


        missing = []
        _missing = d.pop("missing")
        for missing_item_data in (_missing):
            missing_item = ReconciliationDayFindingsItemMissingItem.from_dict(missing_item_data)



            missing.append(missing_item)


        missing_count = d.pop("missingCount")

        reconciliation_day_findings_item = cls(
            account=account,
            extra=extra,
            extra_count=extra_count,
            merchant_ids=merchant_ids,
            missing=missing,
            missing_count=missing_count,
        )

        return reconciliation_day_findings_item

