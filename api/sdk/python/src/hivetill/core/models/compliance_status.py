from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
  from ..models.compliance_status_clearances_item import ComplianceStatusClearancesItem
  from ..models.crossing import Crossing
  from ..models.thresholds import Thresholds





T = TypeVar("T", bound="ComplianceStatus")



@_attrs_define
class ComplianceStatus:
    """ 
        Attributes:
            clearances (list[ComplianceStatusClearancesItem]): The holds that were ended.
            completed_last_24_h_cents (int): The completed sum of the last 24 hours, in US cents.
            completed_last_30_d_cents (int): The completed sum of the last 30 days, in US cents.
            flag (Crossing | None): The reason of the hold; `null` if there is none.
            flagged (bool): Whether the merchant is on hold.
            limits (None | Thresholds): The limits in force; `null` for none.
            merchant_id (str): The id of the merchant.
            notices (list[Crossing]): Soft limits that were exceeded.
            own_limits (bool): Whether the limits are the merchant's own.
            soft_limits (None | Thresholds): The soft limits, which only create notices; `null` for none.
     """

    clearances: list[ComplianceStatusClearancesItem]
    completed_last_24_h_cents: int
    completed_last_30_d_cents: int
    flag: Crossing | None
    flagged: bool
    limits: None | Thresholds
    merchant_id: str
    notices: list[Crossing]
    own_limits: bool
    soft_limits: None | Thresholds





    def to_dict(self) -> dict[str, Any]:
        from ..models.compliance_status_clearances_item import ComplianceStatusClearancesItem # noqa: PLC0415
        from ..models.crossing import Crossing # noqa: PLC0415
        from ..models.thresholds import Thresholds # noqa: PLC0415
        clearances = []
        for clearances_item_data in self.clearances:
            clearances_item = clearances_item_data.to_dict()
            clearances.append(clearances_item)



        completed_last_24_h_cents = self.completed_last_24_h_cents

        completed_last_30_d_cents = self.completed_last_30_d_cents

        flag: dict[str, Any] | None
        if isinstance(self.flag, Crossing):
            flag = self.flag.to_dict()
        else:
            flag = self.flag

        flagged = self.flagged

        limits: dict[str, Any] | None
        if isinstance(self.limits, Thresholds):
            limits = self.limits.to_dict()
        else:
            limits = self.limits

        merchant_id = self.merchant_id

        notices = []
        for notices_item_data in self.notices:
            notices_item = notices_item_data.to_dict()
            notices.append(notices_item)



        own_limits = self.own_limits

        soft_limits: dict[str, Any] | None
        if isinstance(self.soft_limits, Thresholds):
            soft_limits = self.soft_limits.to_dict()
        else:
            soft_limits = self.soft_limits


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "clearances": clearances,
            "completedLast24hCents": completed_last_24_h_cents,
            "completedLast30dCents": completed_last_30_d_cents,
            "flag": flag,
            "flagged": flagged,
            "limits": limits,
            "merchantId": merchant_id,
            "notices": notices,
            "ownLimits": own_limits,
            "softLimits": soft_limits,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.compliance_status_clearances_item import ComplianceStatusClearancesItem # noqa: PLC0415
        from ..models.crossing import Crossing # noqa: PLC0415
        from ..models.thresholds import Thresholds # noqa: PLC0415
        d = dict(src_dict)
        clearances = []
        _clearances = d.pop("clearances")
        for clearances_item_data in (_clearances):
            clearances_item = ComplianceStatusClearancesItem.from_dict(clearances_item_data)



            clearances.append(clearances_item)


        completed_last_24_h_cents = d.pop("completedLast24hCents")

        completed_last_30_d_cents = d.pop("completedLast30dCents")

        def _parse_flag(data: object) -> Crossing | None:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                flag_type_0 = Crossing.from_dict(data)



                return flag_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(Crossing | None, data)

        flag = _parse_flag(d.pop("flag"))


        flagged = d.pop("flagged")

        def _parse_limits(data: object) -> None | Thresholds:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                limits_type_0 = Thresholds.from_dict(data)



                return limits_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | Thresholds, data)

        limits = _parse_limits(d.pop("limits"))


        merchant_id = d.pop("merchantId")

        notices = []
        _notices = d.pop("notices")
        for notices_item_data in (_notices):
            notices_item = Crossing.from_dict(notices_item_data)



            notices.append(notices_item)


        own_limits = d.pop("ownLimits")

        def _parse_soft_limits(data: object) -> None | Thresholds:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                soft_limits_type_0 = Thresholds.from_dict(data)



                return soft_limits_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | Thresholds, data)

        soft_limits = _parse_soft_limits(d.pop("softLimits"))


        compliance_status = cls(
            clearances=clearances,
            completed_last_24_h_cents=completed_last_24_h_cents,
            completed_last_30_d_cents=completed_last_30_d_cents,
            flag=flag,
            flagged=flagged,
            limits=limits,
            merchant_id=merchant_id,
            notices=notices,
            own_limits=own_limits,
            soft_limits=soft_limits,
        )

        return compliance_status

