from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.payment_event_data_exceptions_item import check_payment_event_data_exceptions_item
from ..models.payment_event_data_exceptions_item import PaymentEventDataExceptionsItem
from ..models.payment_event_data_new_exceptions_item import check_payment_event_data_new_exceptions_item
from ..models.payment_event_data_new_exceptions_item import PaymentEventDataNewExceptionsItem
from ..models.payment_event_data_previous_status import check_payment_event_data_previous_status
from ..models.payment_event_data_previous_status import PaymentEventDataPreviousStatus
from ..models.payment_event_data_provider_id import check_payment_event_data_provider_id
from ..models.payment_event_data_provider_id import PaymentEventDataProviderId
from ..models.payment_event_data_status import check_payment_event_data_status
from ..models.payment_event_data_status import PaymentEventDataStatus
from ..types import UNSET, Unset
from typing import cast

if TYPE_CHECKING:
  from ..models.metadata import Metadata
  from ..models.payment_event_data_refund import PaymentEventDataRefund





T = TypeVar("T", bound="PaymentEventData")



@_attrs_define
class PaymentEventData:
    """ 
        Attributes:
            exceptions (list[PaymentEventDataExceptionsItem]): The exceptions of the payment. docs/explanation/payment-
                lifecycle.md describes what to do about each.
            id (str): The id of the payment.
            livemode (bool): Whether the payment uses real money: true only on the main network.
            merchant_id (str): The id of the merchant.
            metadata (Metadata): Data of the merchant: up to 50 keys, each with a text or a list of texts.
            payment_id (str): Alias of `id`.
            previous_status (PaymentEventDataPreviousStatus): The state before.
            provider_id (PaymentEventDataProviderId): The ledger.
            sequence (int): The number of the event within its payment. A lower number is an older state. Ship on
                `completed` regardless of the number, because it is final.
            status (PaymentEventDataStatus): The state after the event. Base decisions on it and not on the `type`.
            internal_id (str | Unset): The id of the transaction that completed the payment, or that pays it while an x402
                payment is in flight; absent before. Show it to a customer who requests proof of payment.
            new_exceptions (list[PaymentEventDataNewExceptionsItem] | Unset): Only in `payment.exception`: the exceptions
                that are new, and those for which more money arrived.
            refund (PaymentEventDataRefund | Unset): Only in `refund.completed`: the refund.
     """

    exceptions: list[PaymentEventDataExceptionsItem]
    id: str
    livemode: bool
    merchant_id: str
    metadata: Metadata
    payment_id: str
    previous_status: PaymentEventDataPreviousStatus
    provider_id: PaymentEventDataProviderId
    sequence: int
    status: PaymentEventDataStatus
    internal_id: str | Unset = UNSET
    new_exceptions: list[PaymentEventDataNewExceptionsItem] | Unset = UNSET
    refund: PaymentEventDataRefund | Unset = UNSET





    def to_dict(self) -> dict[str, Any]:
        from ..models.metadata import Metadata # noqa: PLC0415
        from ..models.payment_event_data_refund import PaymentEventDataRefund # noqa: PLC0415
        exceptions = []
        for exceptions_item_data in self.exceptions:
            exceptions_item: str = exceptions_item_data
            exceptions.append(exceptions_item)



        id = self.id

        livemode = self.livemode

        merchant_id = self.merchant_id

        metadata = self.metadata.to_dict()

        payment_id = self.payment_id

        previous_status: str = self.previous_status

        provider_id: str = self.provider_id

        sequence = self.sequence

        status: str = self.status

        internal_id = self.internal_id

        new_exceptions: list[str] | Unset = UNSET
        if not isinstance(self.new_exceptions, Unset):
            new_exceptions = []
            for new_exceptions_item_data in self.new_exceptions:
                new_exceptions_item: str = new_exceptions_item_data
                new_exceptions.append(new_exceptions_item)



        refund: dict[str, Any] | Unset = UNSET
        if not isinstance(self.refund, Unset):
            refund = self.refund.to_dict()


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "exceptions": exceptions,
            "id": id,
            "livemode": livemode,
            "merchantId": merchant_id,
            "metadata": metadata,
            "paymentId": payment_id,
            "previousStatus": previous_status,
            "providerId": provider_id,
            "sequence": sequence,
            "status": status,
        })
        if internal_id is not UNSET:
            field_dict["internalId"] = internal_id
        if new_exceptions is not UNSET:
            field_dict["newExceptions"] = new_exceptions
        if refund is not UNSET:
            field_dict["refund"] = refund

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.metadata import Metadata # noqa: PLC0415
        from ..models.payment_event_data_refund import PaymentEventDataRefund # noqa: PLC0415
        d = dict(src_dict)
        exceptions = []
        _exceptions = d.pop("exceptions")
        for exceptions_item_data in (_exceptions):
            exceptions_item = check_payment_event_data_exceptions_item(exceptions_item_data)



            exceptions.append(exceptions_item)


        id = d.pop("id")

        livemode = d.pop("livemode")

        merchant_id = d.pop("merchantId")

        metadata = Metadata.from_dict(d.pop("metadata"))




        payment_id = d.pop("paymentId")

        previous_status = check_payment_event_data_previous_status(d.pop("previousStatus"))




        provider_id = check_payment_event_data_provider_id(d.pop("providerId"))




        sequence = d.pop("sequence")

        status = check_payment_event_data_status(d.pop("status"))




        internal_id = d.pop("internalId", UNSET)

        _new_exceptions = d.pop("newExceptions", UNSET)
        new_exceptions: list[PaymentEventDataNewExceptionsItem] | Unset = UNSET
        if _new_exceptions is not UNSET:
            new_exceptions = []
            for new_exceptions_item_data in _new_exceptions:
                new_exceptions_item = check_payment_event_data_new_exceptions_item(new_exceptions_item_data)



                new_exceptions.append(new_exceptions_item)


        _refund = d.pop("refund", UNSET)
        refund: PaymentEventDataRefund | Unset
        if isinstance(_refund,  Unset):
            refund = UNSET
        else:
            refund = PaymentEventDataRefund.from_dict(_refund)




        payment_event_data = cls(
            exceptions=exceptions,
            id=id,
            livemode=livemode,
            merchant_id=merchant_id,
            metadata=metadata,
            payment_id=payment_id,
            previous_status=previous_status,
            provider_id=provider_id,
            sequence=sequence,
            status=status,
            internal_id=internal_id,
            new_exceptions=new_exceptions,
            refund=refund,
        )

        return payment_event_data

