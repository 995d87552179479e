from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.reconciliation_day_outcome import check_reconciliation_day_outcome
from ..models.reconciliation_day_outcome import ReconciliationDayOutcome
from typing import cast
import datetime

if TYPE_CHECKING:
  from ..models.reconciliation_day_findings_item import ReconciliationDayFindingsItem





T = TypeVar("T", bound="ReconciliationDay")



@_attrs_define
class ReconciliationDay:
    """ 
        Attributes:
            accounts (int): How many accounts were compared.
            checked_at (datetime.datetime): When it was checked.
            findings (list[ReconciliationDayFindingsItem]): One entry for each account that differs.
            from_ (datetime.datetime): The beginning of the day.
            mismatches (int): How many differ.
            obstacle (None | str): Why they could not be compared.
            operations (int): How many transfers were compared.
            outcome (ReconciliationDayOutcome): Whether the ledger and the store agree.
            to (datetime.datetime): The end of the day, exclusive.
            unchecked (int): How many could not be compared.
     """

    accounts: int
    checked_at: datetime.datetime
    findings: list[ReconciliationDayFindingsItem]
    from_: datetime.datetime
    mismatches: int
    obstacle: None | str
    operations: int
    outcome: ReconciliationDayOutcome
    to: datetime.datetime
    unchecked: int





    def to_dict(self) -> dict[str, Any]:
        from ..models.reconciliation_day_findings_item import ReconciliationDayFindingsItem # noqa: PLC0415
        accounts = self.accounts

        checked_at = self.checked_at.isoformat()

        findings = []
        for findings_item_data in self.findings:
            findings_item = findings_item_data.to_dict()
            findings.append(findings_item)



        from_ = self.from_.isoformat()

        mismatches = self.mismatches

        obstacle: None | str
        obstacle = self.obstacle

        operations = self.operations

        outcome: str = self.outcome

        to = self.to.isoformat()

        unchecked = self.unchecked


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "accounts": accounts,
            "checkedAt": checked_at,
            "findings": findings,
            "from": from_,
            "mismatches": mismatches,
            "obstacle": obstacle,
            "operations": operations,
            "outcome": outcome,
            "to": to,
            "unchecked": unchecked,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.reconciliation_day_findings_item import ReconciliationDayFindingsItem # noqa: PLC0415
        d = dict(src_dict)
        accounts = d.pop("accounts")

        checked_at = datetime.datetime.fromisoformat(d.pop("checkedAt"))




        findings = []
        _findings = d.pop("findings")
        for findings_item_data in (_findings):
            findings_item = ReconciliationDayFindingsItem.from_dict(findings_item_data)



            findings.append(findings_item)


        from_ = datetime.datetime.fromisoformat(d.pop("from"))




        mismatches = d.pop("mismatches")

        def _parse_obstacle(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        obstacle = _parse_obstacle(d.pop("obstacle"))


        operations = d.pop("operations")

        outcome = check_reconciliation_day_outcome(d.pop("outcome"))




        to = datetime.datetime.fromisoformat(d.pop("to"))




        unchecked = d.pop("unchecked")

        reconciliation_day = cls(
            accounts=accounts,
            checked_at=checked_at,
            findings=findings,
            from_=from_,
            mismatches=mismatches,
            obstacle=obstacle,
            operations=operations,
            outcome=outcome,
            to=to,
            unchecked=unchecked,
        )

        return reconciliation_day

