from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.ready_status import check_ready_status
from ..models.ready_status import ReadyStatus
from typing import cast

if TYPE_CHECKING:
  from ..models.ready_node import ReadyNode





T = TypeVar("T", bound="Ready")



@_attrs_define
class Ready:
    """ 
        Attributes:
            damaged_rows (int): The number of damaged rows in the store. They are never returned.
            head_age_seconds (int | None): The age of the newest block.
            head_block (int): The newest block.
            irreversible_block (int): The newest irreversible block.
            ledger_followed (bool): Whether blocks are read in time.
            ledger_reachable (bool): Whether a ledger node is reachable.
            nodes (list[ReadyNode]): The ledger nodes.
            nodes_needed (int): How many nodes must agree.
            scanned_block (int): The newest block that was read.
            status (ReadyStatus): Everything works.
     """

    damaged_rows: int
    head_age_seconds: int | None
    head_block: int
    irreversible_block: int
    ledger_followed: bool
    ledger_reachable: bool
    nodes: list[ReadyNode]
    nodes_needed: int
    scanned_block: int
    status: ReadyStatus





    def to_dict(self) -> dict[str, Any]:
        from ..models.ready_node import ReadyNode # noqa: PLC0415
        damaged_rows = self.damaged_rows

        head_age_seconds: int | None
        head_age_seconds = self.head_age_seconds

        head_block = self.head_block

        irreversible_block = self.irreversible_block

        ledger_followed = self.ledger_followed

        ledger_reachable = self.ledger_reachable

        nodes = []
        for nodes_item_data in self.nodes:
            nodes_item = nodes_item_data.to_dict()
            nodes.append(nodes_item)



        nodes_needed = self.nodes_needed

        scanned_block = self.scanned_block

        status: str = self.status


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "damagedRows": damaged_rows,
            "headAgeSeconds": head_age_seconds,
            "headBlock": head_block,
            "irreversibleBlock": irreversible_block,
            "ledgerFollowed": ledger_followed,
            "ledgerReachable": ledger_reachable,
            "nodes": nodes,
            "nodesNeeded": nodes_needed,
            "scannedBlock": scanned_block,
            "status": status,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.ready_node import ReadyNode # noqa: PLC0415
        d = dict(src_dict)
        damaged_rows = d.pop("damagedRows")

        def _parse_head_age_seconds(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        head_age_seconds = _parse_head_age_seconds(d.pop("headAgeSeconds"))


        head_block = d.pop("headBlock")

        irreversible_block = d.pop("irreversibleBlock")

        ledger_followed = d.pop("ledgerFollowed")

        ledger_reachable = d.pop("ledgerReachable")

        nodes = []
        _nodes = d.pop("nodes")
        for nodes_item_data in (_nodes):
            nodes_item = ReadyNode.from_dict(nodes_item_data)



            nodes.append(nodes_item)


        nodes_needed = d.pop("nodesNeeded")

        scanned_block = d.pop("scannedBlock")

        status = check_ready_status(d.pop("status"))




        ready = cls(
            damaged_rows=damaged_rows,
            head_age_seconds=head_age_seconds,
            head_block=head_block,
            irreversible_block=irreversible_block,
            ledger_followed=ledger_followed,
            ledger_reachable=ledger_reachable,
            nodes=nodes,
            nodes_needed=nodes_needed,
            scanned_block=scanned_block,
            status=status,
        )

        return ready

