from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.settled_network import check_settled_network
from ..models.settled_network import SettledNetwork
from ..types import UNSET, Unset
from typing import cast

if TYPE_CHECKING:
  from ..models.settled_extensions import SettledExtensions





T = TypeVar("T", bound="Settled")



@_attrs_define
class Settled:
    """ 
        Attributes:
            network (SettledNetwork): The network.
            success (bool): Whether the payment succeeded.
            transaction (str): The id of the transaction.
            tx_id (str): The id of the transaction on the ledger.
            amount (str | Unset): What was paid, in the smallest unit.
            block_num (int | Unset): The number of the block.
            error_message (str | Unset): The same, for people.
            error_reason (str | Unset): Why the payment was refused: a reason from docs/reference/x402.md.
            extensions (SettledExtensions | Unset): The signed receipt of a payment of this gateway, as `offer-receipt`.
            payer (str | Unset): The account that pays. Present after its signatures were verified.
            replayed (bool | Unset): Whether an earlier request contained this payment.
     """

    network: SettledNetwork
    success: bool
    transaction: str
    tx_id: str
    amount: str | Unset = UNSET
    block_num: int | Unset = UNSET
    error_message: str | Unset = UNSET
    error_reason: str | Unset = UNSET
    extensions: SettledExtensions | Unset = UNSET
    payer: str | Unset = UNSET
    replayed: bool | Unset = UNSET





    def to_dict(self) -> dict[str, Any]:
        from ..models.settled_extensions import SettledExtensions # noqa: PLC0415
        network: str = self.network

        success = self.success

        transaction = self.transaction

        tx_id = self.tx_id

        amount = self.amount

        block_num = self.block_num

        error_message = self.error_message

        error_reason = self.error_reason

        extensions: dict[str, Any] | Unset = UNSET
        if not isinstance(self.extensions, Unset):
            extensions = self.extensions.to_dict()

        payer = self.payer

        replayed = self.replayed


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "network": network,
            "success": success,
            "transaction": transaction,
            "txId": tx_id,
        })
        if amount is not UNSET:
            field_dict["amount"] = amount
        if block_num is not UNSET:
            field_dict["blockNum"] = block_num
        if error_message is not UNSET:
            field_dict["errorMessage"] = error_message
        if error_reason is not UNSET:
            field_dict["errorReason"] = error_reason
        if extensions is not UNSET:
            field_dict["extensions"] = extensions
        if payer is not UNSET:
            field_dict["payer"] = payer
        if replayed is not UNSET:
            field_dict["replayed"] = replayed

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.settled_extensions import SettledExtensions # noqa: PLC0415
        d = dict(src_dict)
        network = check_settled_network(d.pop("network"))




        success = d.pop("success")

        transaction = d.pop("transaction")

        tx_id = d.pop("txId")

        amount = d.pop("amount", UNSET)

        block_num = d.pop("blockNum", UNSET)

        error_message = d.pop("errorMessage", UNSET)

        error_reason = d.pop("errorReason", UNSET)

        _extensions = d.pop("extensions", UNSET)
        extensions: SettledExtensions | Unset
        if isinstance(_extensions,  Unset):
            extensions = UNSET
        else:
            extensions = SettledExtensions.from_dict(_extensions)




        payer = d.pop("payer", UNSET)

        replayed = d.pop("replayed", UNSET)

        settled = cls(
            network=network,
            success=success,
            transaction=transaction,
            tx_id=tx_id,
            amount=amount,
            block_num=block_num,
            error_message=error_message,
            error_reason=error_reason,
            extensions=extensions,
            payer=payer,
            replayed=replayed,
        )

        return settled

