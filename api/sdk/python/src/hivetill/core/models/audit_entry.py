from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime

if TYPE_CHECKING:
  from ..models.audit_entry_actor import AuditEntryActor
  from ..models.audit_entry_changes_item import AuditEntryChangesItem





T = TypeVar("T", bound="AuditEntry")



@_attrs_define
class AuditEntry:
    """ 
        Attributes:
            action (str): What was done.
            actor (AuditEntryActor): Who did it.
            at (datetime.datetime): When it happened.
            changes (list[AuditEntryChangesItem]): What changed.
            merchant_id (str): The id of the merchant.
            seq (int): The number of the entry.
            subject (None | str): The subject of the action, besides the merchant.
     """

    action: str
    actor: AuditEntryActor
    at: datetime.datetime
    changes: list[AuditEntryChangesItem]
    merchant_id: str
    seq: int
    subject: None | str





    def to_dict(self) -> dict[str, Any]:
        from ..models.audit_entry_actor import AuditEntryActor # noqa: PLC0415
        from ..models.audit_entry_changes_item import AuditEntryChangesItem # noqa: PLC0415
        action = self.action

        actor = self.actor.to_dict()

        at = self.at.isoformat()

        changes = []
        for changes_item_data in self.changes:
            changes_item = changes_item_data.to_dict()
            changes.append(changes_item)



        merchant_id = self.merchant_id

        seq = self.seq

        subject: None | str
        subject = self.subject


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "action": action,
            "actor": actor,
            "at": at,
            "changes": changes,
            "merchantId": merchant_id,
            "seq": seq,
            "subject": subject,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.audit_entry_actor import AuditEntryActor # noqa: PLC0415
        from ..models.audit_entry_changes_item import AuditEntryChangesItem # noqa: PLC0415
        d = dict(src_dict)
        action = d.pop("action")

        actor = AuditEntryActor.from_dict(d.pop("actor"))




        at = datetime.datetime.fromisoformat(d.pop("at"))




        changes = []
        _changes = d.pop("changes")
        for changes_item_data in (_changes):
            changes_item = AuditEntryChangesItem.from_dict(changes_item_data)



            changes.append(changes_item)


        merchant_id = d.pop("merchantId")

        seq = d.pop("seq")

        def _parse_subject(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        subject = _parse_subject(d.pop("subject"))


        audit_entry = cls(
            action=action,
            actor=actor,
            at=at,
            changes=changes,
            merchant_id=merchant_id,
            seq=seq,
            subject=subject,
        )

        return audit_entry

