from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.payment_cancelled_by_type_1 import check_payment_cancelled_by_type_1
from ..models.payment_cancelled_by_type_1 import PaymentCancelledByType1
from ..models.payment_cancelled_by_type_2_type_1 import check_payment_cancelled_by_type_2_type_1
from ..models.payment_cancelled_by_type_2_type_1 import PaymentCancelledByType2Type1
from ..models.payment_cancelled_by_type_3_type_1 import check_payment_cancelled_by_type_3_type_1
from ..models.payment_cancelled_by_type_3_type_1 import PaymentCancelledByType3Type1
from ..models.payment_currency import check_payment_currency
from ..models.payment_currency import PaymentCurrency
from ..models.payment_exceptions_item import check_payment_exceptions_item
from ..models.payment_exceptions_item import PaymentExceptionsItem
from ..models.payment_previous_status_type_1 import check_payment_previous_status_type_1
from ..models.payment_previous_status_type_1 import PaymentPreviousStatusType1
from ..models.payment_previous_status_type_2_type_1 import check_payment_previous_status_type_2_type_1
from ..models.payment_previous_status_type_2_type_1 import PaymentPreviousStatusType2Type1
from ..models.payment_previous_status_type_3_type_1 import check_payment_previous_status_type_3_type_1
from ..models.payment_previous_status_type_3_type_1 import PaymentPreviousStatusType3Type1
from ..models.payment_provider_id import check_payment_provider_id
from ..models.payment_provider_id import PaymentProviderId
from ..models.payment_status import check_payment_status
from ..models.payment_status import PaymentStatus
from ..models.payment_status_reason_type_1 import check_payment_status_reason_type_1
from ..models.payment_status_reason_type_1 import PaymentStatusReasonType1
from ..models.payment_status_reason_type_2_type_1 import check_payment_status_reason_type_2_type_1
from ..models.payment_status_reason_type_2_type_1 import PaymentStatusReasonType2Type1
from ..models.payment_status_reason_type_3_type_1 import check_payment_status_reason_type_3_type_1
from ..models.payment_status_reason_type_3_type_1 import PaymentStatusReasonType3Type1
from ..types import UNSET, Unset
from typing import cast
import datetime

if TYPE_CHECKING:
  from ..models.amount import Amount
  from ..models.metadata import Metadata
  from ..models.payment_refunds_item import PaymentRefundsItem
  from ..models.payment_resolution_type_0 import PaymentResolutionType0
  from ..models.transfer import Transfer





T = TypeVar("T", bound="Payment")



@_attrs_define
class Payment:
    """ The whole record of a payment.

        Attributes:
            amount (Amount): An amount with its value in US cents.
            amount_formatted (str): Alias of `amount.formatted`.
            amount_late (str): The amount that arrived too late and does not count, in the smallest unit.
            amount_overpaid (str): The amount paid in excess, in the smallest unit.
            amount_paid (str): The irreversible sum that counts, in the smallest unit.
            amount_refunded (str): What was refunded, in the smallest unit.
            amount_remaining (str): What is still missing, in the smallest unit.
            cancel_requested (bool): Whether a request to cancel is undecided or in force.
            cancel_requested_at (datetime.datetime | None): When the cancellation was requested.
            cancelled_by (None | PaymentCancelledByType1 | PaymentCancelledByType2Type1 | PaymentCancelledByType3Type1): Who
                requested the cancellation first.
            checkout_url (str): The URL to redirect the customer to. It contains the public id.
            completed_at (datetime.datetime | None): When the payment was completed; `null` before.
            created_at (datetime.datetime): When it was created.
            currency (PaymentCurrency): The currency of the ledger.
            cutoff (datetime.datetime | None): The last block time at which a transfer still counts.
            description (str): What the customer buys.
            exceptions (list[PaymentExceptionsItem]): The exceptions of the payment. docs/explanation/payment-lifecycle.md
                describes what to do about each.
            expired (bool): Whether the payment has expired. The state changes once every block up to `expiresAt` has been
                read.
            expires_at (datetime.datetime): When the payment expires. A transfer in a block up to this time counts, even if
                it is seen later.
            fee (str): The fee of the service in the smallest unit, rounded down. It is fixed at creation.
            id (str): The id of the payment. It is public: the memo of the transfer contains it.
            livemode (bool): Whether the payment uses real money: true only on the main network.
            memo (str): The memo of the transfer. It identifies the payment.
            merchant_id (str): The id of the merchant.
            merchant_name (str): The merchant's name.
            metadata (Metadata): Data of the merchant: up to 50 keys, each with a text or a list of texts.
            needs_attention (bool): Whether an exception of the payment is unresolved.
            net (str): The amount without the fee, in the smallest unit.
            pay_to (str): The Hive account that is paid. It is fixed at creation.
            precision (int): The number of decimals of the currency.
            previous_status (None | PaymentPreviousStatusType1 | PaymentPreviousStatusType2Type1 |
                PaymentPreviousStatusType3Type1): The previous state.
            provider_id (PaymentProviderId): The ledger.
            rate_at (datetime.datetime | None): When the rate of `usdCents` was read; `null` for HBD at its peg of one US
                dollar.
            refunds (list[PaymentRefundsItem]): The refunds that were found on the ledger.
            resolution (None | PaymentResolutionType0): What was decided about the exceptions; `null` before.
            sequence (int): Rises by one with each event of the payment; 1 at creation. A higher number is a newer state,
                except after a restore from a backup, which may reuse numbers.
            slug (str): The secret part of `slugUrl`: 128 random bits.
            slug_url (str): The secret URL of the same page. It shows the receipt; agents pay it by x402.
            status (PaymentStatus): The state. `completed`, `failed`, `user_cancelled` and `system_cancelled` are final and
                never change.
            status_reason (None | PaymentStatusReasonType1 | PaymentStatusReasonType2Type1 | PaymentStatusReasonType3Type1):
                Why the payment is in its state; `null` while it is pending.
            transfer_count (int): How many transfers named the payment, listed here or not.
            transfers (list[Transfer]): Those of a signed transaction, those that completed the payment and the newest
                others, at most 20. All of them: `/transfers`.
            tx_hint (None | str): The transaction that the customer's browser reported. It is unverified.
            tx_id (None | str): The transaction that pays or paid: also while an x402 payment is in flight.
            updated_at (datetime.datetime): When the record last changed.
            usd_equivalent_cents (int): Alias of `amount.usdCents`.
            wallet_opened_at (datetime.datetime | None): When the page first reported an opened wallet.
            cancel_url (str | Unset): Where the checkout page redirects after cancellation or expiry; absent if not set.
            internal_id (str | Unset): The id of the transaction that completed the payment, or that pays it while an x402
                payment is in flight; absent before. Show it to a customer who requests proof of payment.
            merchant_icon_url (str | Unset): The merchant's logo; absent if there is none.
            redirect_url (str | Unset): Where the checkout page redirects after completion; absent if not set.
            redirection_url (str | Unset): Alias of `redirectUrl`; absent with it.
     """

    amount: Amount
    amount_formatted: str
    amount_late: str
    amount_overpaid: str
    amount_paid: str
    amount_refunded: str
    amount_remaining: str
    cancel_requested: bool
    cancel_requested_at: datetime.datetime | None
    cancelled_by: None | PaymentCancelledByType1 | PaymentCancelledByType2Type1 | PaymentCancelledByType3Type1
    checkout_url: str
    completed_at: datetime.datetime | None
    created_at: datetime.datetime
    currency: PaymentCurrency
    cutoff: datetime.datetime | None
    description: str
    exceptions: list[PaymentExceptionsItem]
    expired: bool
    expires_at: datetime.datetime
    fee: str
    id: str
    livemode: bool
    memo: str
    merchant_id: str
    merchant_name: str
    metadata: Metadata
    needs_attention: bool
    net: str
    pay_to: str
    precision: int
    previous_status: None | PaymentPreviousStatusType1 | PaymentPreviousStatusType2Type1 | PaymentPreviousStatusType3Type1
    provider_id: PaymentProviderId
    rate_at: datetime.datetime | None
    refunds: list[PaymentRefundsItem]
    resolution: None | PaymentResolutionType0
    sequence: int
    slug: str
    slug_url: str
    status: PaymentStatus
    status_reason: None | PaymentStatusReasonType1 | PaymentStatusReasonType2Type1 | PaymentStatusReasonType3Type1
    transfer_count: int
    transfers: list[Transfer]
    tx_hint: None | str
    tx_id: None | str
    updated_at: datetime.datetime
    usd_equivalent_cents: int
    wallet_opened_at: datetime.datetime | None
    cancel_url: str | Unset = UNSET
    internal_id: str | Unset = UNSET
    merchant_icon_url: str | Unset = UNSET
    redirect_url: str | Unset = UNSET
    redirection_url: str | Unset = UNSET





    def to_dict(self) -> dict[str, Any]:
        from ..models.amount import Amount # noqa: PLC0415
        from ..models.metadata import Metadata # noqa: PLC0415
        from ..models.payment_refunds_item import PaymentRefundsItem # noqa: PLC0415
        from ..models.payment_resolution_type_0 import PaymentResolutionType0 # noqa: PLC0415
        from ..models.transfer import Transfer # noqa: PLC0415
        amount = self.amount.to_dict()

        amount_formatted = self.amount_formatted

        amount_late = self.amount_late

        amount_overpaid = self.amount_overpaid

        amount_paid = self.amount_paid

        amount_refunded = self.amount_refunded

        amount_remaining = self.amount_remaining

        cancel_requested = self.cancel_requested

        cancel_requested_at: None | str
        if isinstance(self.cancel_requested_at, datetime.datetime):
            cancel_requested_at = self.cancel_requested_at.isoformat()
        else:
            cancel_requested_at = self.cancel_requested_at

        cancelled_by: None | str
        if isinstance(self.cancelled_by, str):
            cancelled_by = self.cancelled_by
        elif isinstance(self.cancelled_by, str):
            cancelled_by = self.cancelled_by
        elif isinstance(self.cancelled_by, str):
            cancelled_by = self.cancelled_by
        else:
            cancelled_by = self.cancelled_by

        checkout_url = self.checkout_url

        completed_at: None | str
        if isinstance(self.completed_at, datetime.datetime):
            completed_at = self.completed_at.isoformat()
        else:
            completed_at = self.completed_at

        created_at = self.created_at.isoformat()

        currency: str = self.currency

        cutoff: None | str
        if isinstance(self.cutoff, datetime.datetime):
            cutoff = self.cutoff.isoformat()
        else:
            cutoff = self.cutoff

        description = self.description

        exceptions = []
        for exceptions_item_data in self.exceptions:
            exceptions_item: str = exceptions_item_data
            exceptions.append(exceptions_item)



        expired = self.expired

        expires_at = self.expires_at.isoformat()

        fee = self.fee

        id = self.id

        livemode = self.livemode

        memo = self.memo

        merchant_id = self.merchant_id

        merchant_name = self.merchant_name

        metadata = self.metadata.to_dict()

        needs_attention = self.needs_attention

        net = self.net

        pay_to = self.pay_to

        precision = self.precision

        previous_status: None | str
        if isinstance(self.previous_status, str):
            previous_status = self.previous_status
        elif isinstance(self.previous_status, str):
            previous_status = self.previous_status
        elif isinstance(self.previous_status, str):
            previous_status = self.previous_status
        else:
            previous_status = self.previous_status

        provider_id: str = self.provider_id

        rate_at: None | str
        if isinstance(self.rate_at, datetime.datetime):
            rate_at = self.rate_at.isoformat()
        else:
            rate_at = self.rate_at

        refunds = []
        for refunds_item_data in self.refunds:
            refunds_item = refunds_item_data.to_dict()
            refunds.append(refunds_item)



        resolution: dict[str, Any] | None
        if isinstance(self.resolution, PaymentResolutionType0):
            resolution = self.resolution.to_dict()
        else:
            resolution = self.resolution

        sequence = self.sequence

        slug = self.slug

        slug_url = self.slug_url

        status: str = self.status

        status_reason: None | str
        if isinstance(self.status_reason, str):
            status_reason = self.status_reason
        elif isinstance(self.status_reason, str):
            status_reason = self.status_reason
        elif isinstance(self.status_reason, str):
            status_reason = self.status_reason
        else:
            status_reason = self.status_reason

        transfer_count = self.transfer_count

        transfers = []
        for transfers_item_data in self.transfers:
            transfers_item = transfers_item_data.to_dict()
            transfers.append(transfers_item)



        tx_hint: None | str
        tx_hint = self.tx_hint

        tx_id: None | str
        tx_id = self.tx_id

        updated_at = self.updated_at.isoformat()

        usd_equivalent_cents = self.usd_equivalent_cents

        wallet_opened_at: None | str
        if isinstance(self.wallet_opened_at, datetime.datetime):
            wallet_opened_at = self.wallet_opened_at.isoformat()
        else:
            wallet_opened_at = self.wallet_opened_at

        cancel_url = self.cancel_url

        internal_id = self.internal_id

        merchant_icon_url = self.merchant_icon_url

        redirect_url = self.redirect_url

        redirection_url = self.redirection_url


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "amount": amount,
            "amountFormatted": amount_formatted,
            "amountLate": amount_late,
            "amountOverpaid": amount_overpaid,
            "amountPaid": amount_paid,
            "amountRefunded": amount_refunded,
            "amountRemaining": amount_remaining,
            "cancelRequested": cancel_requested,
            "cancelRequestedAt": cancel_requested_at,
            "cancelledBy": cancelled_by,
            "checkoutUrl": checkout_url,
            "completedAt": completed_at,
            "createdAt": created_at,
            "currency": currency,
            "cutoff": cutoff,
            "description": description,
            "exceptions": exceptions,
            "expired": expired,
            "expiresAt": expires_at,
            "fee": fee,
            "id": id,
            "livemode": livemode,
            "memo": memo,
            "merchantId": merchant_id,
            "merchantName": merchant_name,
            "metadata": metadata,
            "needsAttention": needs_attention,
            "net": net,
            "payTo": pay_to,
            "precision": precision,
            "previousStatus": previous_status,
            "providerId": provider_id,
            "rateAt": rate_at,
            "refunds": refunds,
            "resolution": resolution,
            "sequence": sequence,
            "slug": slug,
            "slugUrl": slug_url,
            "status": status,
            "statusReason": status_reason,
            "transferCount": transfer_count,
            "transfers": transfers,
            "txHint": tx_hint,
            "txId": tx_id,
            "updatedAt": updated_at,
            "usdEquivalentCents": usd_equivalent_cents,
            "walletOpenedAt": wallet_opened_at,
        })
        if cancel_url is not UNSET:
            field_dict["cancelUrl"] = cancel_url
        if internal_id is not UNSET:
            field_dict["internalId"] = internal_id
        if merchant_icon_url is not UNSET:
            field_dict["merchantIconUrl"] = merchant_icon_url
        if redirect_url is not UNSET:
            field_dict["redirectUrl"] = redirect_url
        if redirection_url is not UNSET:
            field_dict["redirectionUrl"] = redirection_url

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.amount import Amount # noqa: PLC0415
        from ..models.metadata import Metadata # noqa: PLC0415
        from ..models.payment_refunds_item import PaymentRefundsItem # noqa: PLC0415
        from ..models.payment_resolution_type_0 import PaymentResolutionType0 # noqa: PLC0415
        from ..models.transfer import Transfer # noqa: PLC0415
        d = dict(src_dict)
        amount = Amount.from_dict(d.pop("amount"))




        amount_formatted = d.pop("amountFormatted")

        amount_late = d.pop("amountLate")

        amount_overpaid = d.pop("amountOverpaid")

        amount_paid = d.pop("amountPaid")

        amount_refunded = d.pop("amountRefunded")

        amount_remaining = d.pop("amountRemaining")

        cancel_requested = d.pop("cancelRequested")

        def _parse_cancel_requested_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                cancel_requested_at_type_0 = datetime.datetime.fromisoformat(data)



                return cancel_requested_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        cancel_requested_at = _parse_cancel_requested_at(d.pop("cancelRequestedAt"))


        def _parse_cancelled_by(data: object) -> None | PaymentCancelledByType1 | PaymentCancelledByType2Type1 | PaymentCancelledByType3Type1:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                cancelled_by_type_1 = check_payment_cancelled_by_type_1(data)



                return cancelled_by_type_1
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            try:
                if not isinstance(data, str):
                    raise TypeError()
                cancelled_by_type_2_type_1 = check_payment_cancelled_by_type_2_type_1(data)



                return cancelled_by_type_2_type_1
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            try:
                if not isinstance(data, str):
                    raise TypeError()
                cancelled_by_type_3_type_1 = check_payment_cancelled_by_type_3_type_1(data)



                return cancelled_by_type_3_type_1
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | PaymentCancelledByType1 | PaymentCancelledByType2Type1 | PaymentCancelledByType3Type1, data)

        cancelled_by = _parse_cancelled_by(d.pop("cancelledBy"))


        checkout_url = d.pop("checkoutUrl")

        def _parse_completed_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                completed_at_type_0 = datetime.datetime.fromisoformat(data)



                return completed_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        completed_at = _parse_completed_at(d.pop("completedAt"))


        created_at = datetime.datetime.fromisoformat(d.pop("createdAt"))




        currency = check_payment_currency(d.pop("currency"))




        def _parse_cutoff(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                cutoff_type_0 = datetime.datetime.fromisoformat(data)



                return cutoff_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        cutoff = _parse_cutoff(d.pop("cutoff"))


        description = d.pop("description")

        exceptions = []
        _exceptions = d.pop("exceptions")
        for exceptions_item_data in (_exceptions):
            exceptions_item = check_payment_exceptions_item(exceptions_item_data)



            exceptions.append(exceptions_item)


        expired = d.pop("expired")

        expires_at = datetime.datetime.fromisoformat(d.pop("expiresAt"))




        fee = d.pop("fee")

        id = d.pop("id")

        livemode = d.pop("livemode")

        memo = d.pop("memo")

        merchant_id = d.pop("merchantId")

        merchant_name = d.pop("merchantName")

        metadata = Metadata.from_dict(d.pop("metadata"))




        needs_attention = d.pop("needsAttention")

        net = d.pop("net")

        pay_to = d.pop("payTo")

        precision = d.pop("precision")

        def _parse_previous_status(data: object) -> None | PaymentPreviousStatusType1 | PaymentPreviousStatusType2Type1 | PaymentPreviousStatusType3Type1:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                previous_status_type_1 = check_payment_previous_status_type_1(data)



                return previous_status_type_1
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            try:
                if not isinstance(data, str):
                    raise TypeError()
                previous_status_type_2_type_1 = check_payment_previous_status_type_2_type_1(data)



                return previous_status_type_2_type_1
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            try:
                if not isinstance(data, str):
                    raise TypeError()
                previous_status_type_3_type_1 = check_payment_previous_status_type_3_type_1(data)



                return previous_status_type_3_type_1
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | PaymentPreviousStatusType1 | PaymentPreviousStatusType2Type1 | PaymentPreviousStatusType3Type1, data)

        previous_status = _parse_previous_status(d.pop("previousStatus"))


        provider_id = check_payment_provider_id(d.pop("providerId"))




        def _parse_rate_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                rate_at_type_0 = datetime.datetime.fromisoformat(data)



                return rate_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        rate_at = _parse_rate_at(d.pop("rateAt"))


        refunds = []
        _refunds = d.pop("refunds")
        for refunds_item_data in (_refunds):
            refunds_item = PaymentRefundsItem.from_dict(refunds_item_data)



            refunds.append(refunds_item)


        def _parse_resolution(data: object) -> None | PaymentResolutionType0:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                resolution_type_0 = PaymentResolutionType0.from_dict(data)



                return resolution_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | PaymentResolutionType0, data)

        resolution = _parse_resolution(d.pop("resolution"))


        sequence = d.pop("sequence")

        slug = d.pop("slug")

        slug_url = d.pop("slugUrl")

        status = check_payment_status(d.pop("status"))




        def _parse_status_reason(data: object) -> None | PaymentStatusReasonType1 | PaymentStatusReasonType2Type1 | PaymentStatusReasonType3Type1:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                status_reason_type_1 = check_payment_status_reason_type_1(data)



                return status_reason_type_1
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            try:
                if not isinstance(data, str):
                    raise TypeError()
                status_reason_type_2_type_1 = check_payment_status_reason_type_2_type_1(data)



                return status_reason_type_2_type_1
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            try:
                if not isinstance(data, str):
                    raise TypeError()
                status_reason_type_3_type_1 = check_payment_status_reason_type_3_type_1(data)



                return status_reason_type_3_type_1
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | PaymentStatusReasonType1 | PaymentStatusReasonType2Type1 | PaymentStatusReasonType3Type1, data)

        status_reason = _parse_status_reason(d.pop("statusReason"))


        transfer_count = d.pop("transferCount")

        transfers = []
        _transfers = d.pop("transfers")
        for transfers_item_data in (_transfers):
            transfers_item = Transfer.from_dict(transfers_item_data)



            transfers.append(transfers_item)


        def _parse_tx_hint(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        tx_hint = _parse_tx_hint(d.pop("txHint"))


        def _parse_tx_id(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        tx_id = _parse_tx_id(d.pop("txId"))


        updated_at = datetime.datetime.fromisoformat(d.pop("updatedAt"))




        usd_equivalent_cents = d.pop("usdEquivalentCents")

        def _parse_wallet_opened_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                wallet_opened_at_type_0 = datetime.datetime.fromisoformat(data)



                return wallet_opened_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        wallet_opened_at = _parse_wallet_opened_at(d.pop("walletOpenedAt"))


        cancel_url = d.pop("cancelUrl", UNSET)

        internal_id = d.pop("internalId", UNSET)

        merchant_icon_url = d.pop("merchantIconUrl", UNSET)

        redirect_url = d.pop("redirectUrl", UNSET)

        redirection_url = d.pop("redirectionUrl", UNSET)

        payment = cls(
            amount=amount,
            amount_formatted=amount_formatted,
            amount_late=amount_late,
            amount_overpaid=amount_overpaid,
            amount_paid=amount_paid,
            amount_refunded=amount_refunded,
            amount_remaining=amount_remaining,
            cancel_requested=cancel_requested,
            cancel_requested_at=cancel_requested_at,
            cancelled_by=cancelled_by,
            checkout_url=checkout_url,
            completed_at=completed_at,
            created_at=created_at,
            currency=currency,
            cutoff=cutoff,
            description=description,
            exceptions=exceptions,
            expired=expired,
            expires_at=expires_at,
            fee=fee,
            id=id,
            livemode=livemode,
            memo=memo,
            merchant_id=merchant_id,
            merchant_name=merchant_name,
            metadata=metadata,
            needs_attention=needs_attention,
            net=net,
            pay_to=pay_to,
            precision=precision,
            previous_status=previous_status,
            provider_id=provider_id,
            rate_at=rate_at,
            refunds=refunds,
            resolution=resolution,
            sequence=sequence,
            slug=slug,
            slug_url=slug_url,
            status=status,
            status_reason=status_reason,
            transfer_count=transfer_count,
            transfers=transfers,
            tx_hint=tx_hint,
            tx_id=tx_id,
            updated_at=updated_at,
            usd_equivalent_cents=usd_equivalent_cents,
            wallet_opened_at=wallet_opened_at,
            cancel_url=cancel_url,
            internal_id=internal_id,
            merchant_icon_url=merchant_icon_url,
            redirect_url=redirect_url,
            redirection_url=redirection_url,
        )

        return payment

