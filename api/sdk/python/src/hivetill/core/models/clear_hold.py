from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast

if TYPE_CHECKING:
  from ..models.thresholds import Thresholds





T = TypeVar("T", bound="ClearHold")



@_attrs_define
class ClearHold:
    """ 
        Attributes:
            reason (str): Why the hold ends. It is kept in the audit log.
            limits (None | Thresholds | Unset): Individual limits from now on; `null` keeps the default limits.
     """

    reason: str
    limits: None | Thresholds | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)





    def to_dict(self) -> dict[str, Any]:
        from ..models.thresholds import Thresholds # noqa: PLC0415
        reason = self.reason

        limits: dict[str, Any] | None | Unset
        if isinstance(self.limits, Unset):
            limits = UNSET
        elif isinstance(self.limits, Thresholds):
            limits = self.limits.to_dict()
        else:
            limits = self.limits


        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({
            "reason": reason,
        })
        if limits is not UNSET:
            field_dict["limits"] = limits

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.thresholds import Thresholds # noqa: PLC0415
        d = dict(src_dict)
        reason = d.pop("reason")

        def _parse_limits(data: object) -> None | Thresholds | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                limits_type_0 = Thresholds.from_dict(data)



                return limits_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | Thresholds | Unset, data)

        limits = _parse_limits(d.pop("limits", UNSET))


        clear_hold = cls(
            reason=reason,
            limits=limits,
        )


        clear_hold.additional_properties = d
        return clear_hold

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
