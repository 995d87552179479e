from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.resolve_kind import check_resolve_kind
from ..models.resolve_kind import ResolveKind
from ..types import UNSET, Unset
from typing import cast






T = TypeVar("T", bound="Resolve")



@_attrs_define
class Resolve:
    """ 
        Attributes:
            kind (ResolveKind): What you decided: keep the money and ship (`accepted`), return it (`refunded`), or do
                nothing (`ignored`).
            note (None | str | Unset): A note for yourself.
            tx_id (None | str | Unset): The transaction of your refund.
     """

    kind: ResolveKind
    note: None | str | Unset = UNSET
    tx_id: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)





    def to_dict(self) -> dict[str, Any]:
        kind: str = self.kind

        note: None | str | Unset
        if isinstance(self.note, Unset):
            note = UNSET
        else:
            note = self.note

        tx_id: None | str | Unset
        if isinstance(self.tx_id, Unset):
            tx_id = UNSET
        else:
            tx_id = self.tx_id


        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({
            "kind": kind,
        })
        if note is not UNSET:
            field_dict["note"] = note
        if tx_id is not UNSET:
            field_dict["txId"] = tx_id

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        kind = check_resolve_kind(d.pop("kind"))




        def _parse_note(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        note = _parse_note(d.pop("note", UNSET))


        def _parse_tx_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        tx_id = _parse_tx_id(d.pop("txId", UNSET))


        resolve = cls(
            kind=kind,
            note=note,
            tx_id=tx_id,
        )


        resolve.additional_properties = d
        return resolve

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
