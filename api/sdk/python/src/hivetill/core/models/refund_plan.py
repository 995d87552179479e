from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
  from ..models.refund_plan_operation_item_type_1 import RefundPlanOperationItemType1
  from ..models.refund_plan_owed_item import RefundPlanOwedItem
  from ..models.sum_ import Sum





T = TypeVar("T", bound="RefundPlan")



@_attrs_define
class RefundPlan:
    """ 
        Attributes:
            amount (Sum): An amount of a transfer or refund.
            from_ (str): The account that refunds.
            hivesigner_url (str): The same by HiveSigner.
            memo (str): The memo that identifies the refund on the ledger.
            operation (list[RefundPlanOperationItemType1 | str]): The transfer as wallets expect it: `transfer`, then its
                fields.
            owed (list[RefundPlanOwedItem]): The amounts owed, by payer.
            payment_id (str): The payment.
            to (str): The account that is refunded.
            uri (str): Opens a wallet with the transfer filled in.
     """

    amount: Sum
    from_: str
    hivesigner_url: str
    memo: str
    operation: list[RefundPlanOperationItemType1 | str]
    owed: list[RefundPlanOwedItem]
    payment_id: str
    to: str
    uri: str





    def to_dict(self) -> dict[str, Any]:
        from ..models.refund_plan_operation_item_type_1 import RefundPlanOperationItemType1 # noqa: PLC0415
        from ..models.refund_plan_owed_item import RefundPlanOwedItem # noqa: PLC0415
        from ..models.sum_ import Sum # noqa: PLC0415
        amount = self.amount.to_dict()

        from_ = self.from_

        hivesigner_url = self.hivesigner_url

        memo = self.memo

        operation = []
        for operation_item_data in self.operation:
            operation_item: dict[str, Any] | str
            if isinstance(operation_item_data, RefundPlanOperationItemType1):
                operation_item = operation_item_data.to_dict()
            else:
                operation_item = operation_item_data
            operation.append(operation_item)



        owed = []
        for owed_item_data in self.owed:
            owed_item = owed_item_data.to_dict()
            owed.append(owed_item)



        payment_id = self.payment_id

        to = self.to

        uri = self.uri


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "amount": amount,
            "from": from_,
            "hivesignerUrl": hivesigner_url,
            "memo": memo,
            "operation": operation,
            "owed": owed,
            "paymentId": payment_id,
            "to": to,
            "uri": uri,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.refund_plan_operation_item_type_1 import RefundPlanOperationItemType1 # noqa: PLC0415
        from ..models.refund_plan_owed_item import RefundPlanOwedItem # noqa: PLC0415
        from ..models.sum_ import Sum # noqa: PLC0415
        d = dict(src_dict)
        amount = Sum.from_dict(d.pop("amount"))




        from_ = d.pop("from")

        hivesigner_url = d.pop("hivesignerUrl")

        memo = d.pop("memo")

        operation = []
        _operation = d.pop("operation")
        for operation_item_data in (_operation):
            def _parse_operation_item(data: object) -> RefundPlanOperationItemType1 | str:
                try:
                    if not isinstance(data, dict):
                        raise TypeError()
                    operation_item_type_1 = RefundPlanOperationItemType1.from_dict(data)



                    return operation_item_type_1
                except (TypeError, ValueError, AttributeError, KeyError):
                    pass
                return cast(RefundPlanOperationItemType1 | str, data)

            operation_item = _parse_operation_item(operation_item_data)

            operation.append(operation_item)


        owed = []
        _owed = d.pop("owed")
        for owed_item_data in (_owed):
            owed_item = RefundPlanOwedItem.from_dict(owed_item_data)



            owed.append(owed_item)


        payment_id = d.pop("paymentId")

        to = d.pop("to")

        uri = d.pop("uri")

        refund_plan = cls(
            amount=amount,
            from_=from_,
            hivesigner_url=hivesigner_url,
            memo=memo,
            operation=operation,
            owed=owed,
            payment_id=payment_id,
            to=to,
            uri=uri,
        )

        return refund_plan

