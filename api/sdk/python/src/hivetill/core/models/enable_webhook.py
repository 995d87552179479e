from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast
import datetime






T = TypeVar("T", bound="EnableWebhook")



@_attrs_define
class EnableWebhook:
    """ 
        Attributes:
            replay_since (datetime.datetime | None | Unset): Send the deliveries that are `held` or `failed` since this
                time. A `pending` delivery keeps its next attempt.
     """

    replay_since: datetime.datetime | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)





    def to_dict(self) -> dict[str, Any]:
        replay_since: None | str | Unset
        if isinstance(self.replay_since, Unset):
            replay_since = UNSET
        elif isinstance(self.replay_since, datetime.datetime):
            replay_since = self.replay_since.isoformat()
        else:
            replay_since = self.replay_since


        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({
        })
        if replay_since is not UNSET:
            field_dict["replaySince"] = replay_since

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        def _parse_replay_since(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                replay_since_type_0 = datetime.datetime.fromisoformat(data)



                return replay_since_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        replay_since = _parse_replay_since(d.pop("replaySince", UNSET))


        enable_webhook = cls(
            replay_since=replay_since,
        )


        enable_webhook.additional_properties = d
        return enable_webhook

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
