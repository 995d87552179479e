from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.admin_billing_period_status import AdminBillingPeriodStatus
from ..models.admin_billing_period_status import check_admin_billing_period_status
from ..types import UNSET, Unset
from typing import cast
import datetime






T = TypeVar("T", bound="AdminBillingPeriod")



@_attrs_define
class AdminBillingPeriod:
    """ 
        Attributes:
            created_at (datetime.datetime): When it was created.
            due_at (datetime.datetime | None): When it is due.
            id (str): The id of the billing period.
            invoice_amount_cents (int): The invoice amount of the month, in US cents.
            invoice_payment_url (None | str): Where the invoice is paid.
            invoice_session_id (None | str): The payment by which the invoice is paid.
            invoice_slug (None | str): The slug of that payment.
            paid_at (datetime.datetime | None): When it was paid.
            period_end (datetime.datetime): The end of the month, exclusive.
            period_start (datetime.datetime): The beginning of the month, in UTC.
            status (AdminBillingPeriodStatus): The state of the month.
            total_volume_cents (int): The volume in US cents.
            transaction_count (int): The number of completed payments.
            updated_at (datetime.datetime): When the record last changed.
            merchant_hive_account_name (str | Unset): The merchant's Hive account.
            merchant_icon_url (None | str | Unset): The merchant's logo; absent if there is none.
            merchant_id (str | Unset): The id of the merchant.
            merchant_name (str | Unset): The merchant's name.
            missing_fee_cents (int | Unset): Fees of that part that are missing.
            split_volume_cents (int | Unset): The part of the volume whose fee was collected with each payment.
     """

    created_at: datetime.datetime
    due_at: datetime.datetime | None
    id: str
    invoice_amount_cents: int
    invoice_payment_url: None | str
    invoice_session_id: None | str
    invoice_slug: None | str
    paid_at: datetime.datetime | None
    period_end: datetime.datetime
    period_start: datetime.datetime
    status: AdminBillingPeriodStatus
    total_volume_cents: int
    transaction_count: int
    updated_at: datetime.datetime
    merchant_hive_account_name: str | Unset = UNSET
    merchant_icon_url: None | str | Unset = UNSET
    merchant_id: str | Unset = UNSET
    merchant_name: str | Unset = UNSET
    missing_fee_cents: int | Unset = UNSET
    split_volume_cents: int | Unset = UNSET





    def to_dict(self) -> dict[str, Any]:
        created_at = self.created_at.isoformat()

        due_at: None | str
        if isinstance(self.due_at, datetime.datetime):
            due_at = self.due_at.isoformat()
        else:
            due_at = self.due_at

        id = self.id

        invoice_amount_cents = self.invoice_amount_cents

        invoice_payment_url: None | str
        invoice_payment_url = self.invoice_payment_url

        invoice_session_id: None | str
        invoice_session_id = self.invoice_session_id

        invoice_slug: None | str
        invoice_slug = self.invoice_slug

        paid_at: None | str
        if isinstance(self.paid_at, datetime.datetime):
            paid_at = self.paid_at.isoformat()
        else:
            paid_at = self.paid_at

        period_end = self.period_end.isoformat()

        period_start = self.period_start.isoformat()

        status: str = self.status

        total_volume_cents = self.total_volume_cents

        transaction_count = self.transaction_count

        updated_at = self.updated_at.isoformat()

        merchant_hive_account_name = self.merchant_hive_account_name

        merchant_icon_url: None | str | Unset
        if isinstance(self.merchant_icon_url, Unset):
            merchant_icon_url = UNSET
        else:
            merchant_icon_url = self.merchant_icon_url

        merchant_id = self.merchant_id

        merchant_name = self.merchant_name

        missing_fee_cents = self.missing_fee_cents

        split_volume_cents = self.split_volume_cents


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "createdAt": created_at,
            "dueAt": due_at,
            "id": id,
            "invoiceAmountCents": invoice_amount_cents,
            "invoicePaymentUrl": invoice_payment_url,
            "invoiceSessionId": invoice_session_id,
            "invoiceSlug": invoice_slug,
            "paidAt": paid_at,
            "periodEnd": period_end,
            "periodStart": period_start,
            "status": status,
            "totalVolumeCents": total_volume_cents,
            "transactionCount": transaction_count,
            "updatedAt": updated_at,
        })
        if merchant_hive_account_name is not UNSET:
            field_dict["merchantHiveAccountName"] = merchant_hive_account_name
        if merchant_icon_url is not UNSET:
            field_dict["merchantIconUrl"] = merchant_icon_url
        if merchant_id is not UNSET:
            field_dict["merchantId"] = merchant_id
        if merchant_name is not UNSET:
            field_dict["merchantName"] = merchant_name
        if missing_fee_cents is not UNSET:
            field_dict["missingFeeCents"] = missing_fee_cents
        if split_volume_cents is not UNSET:
            field_dict["splitVolumeCents"] = split_volume_cents

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        created_at = datetime.datetime.fromisoformat(d.pop("createdAt"))




        def _parse_due_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                due_at_type_0 = datetime.datetime.fromisoformat(data)



                return due_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        due_at = _parse_due_at(d.pop("dueAt"))


        id = d.pop("id")

        invoice_amount_cents = d.pop("invoiceAmountCents")

        def _parse_invoice_payment_url(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        invoice_payment_url = _parse_invoice_payment_url(d.pop("invoicePaymentUrl"))


        def _parse_invoice_session_id(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        invoice_session_id = _parse_invoice_session_id(d.pop("invoiceSessionId"))


        def _parse_invoice_slug(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        invoice_slug = _parse_invoice_slug(d.pop("invoiceSlug"))


        def _parse_paid_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                paid_at_type_0 = datetime.datetime.fromisoformat(data)



                return paid_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        paid_at = _parse_paid_at(d.pop("paidAt"))


        period_end = datetime.datetime.fromisoformat(d.pop("periodEnd"))




        period_start = datetime.datetime.fromisoformat(d.pop("periodStart"))




        status = check_admin_billing_period_status(d.pop("status"))




        total_volume_cents = d.pop("totalVolumeCents")

        transaction_count = d.pop("transactionCount")

        updated_at = datetime.datetime.fromisoformat(d.pop("updatedAt"))




        merchant_hive_account_name = d.pop("merchantHiveAccountName", UNSET)

        def _parse_merchant_icon_url(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        merchant_icon_url = _parse_merchant_icon_url(d.pop("merchantIconUrl", UNSET))


        merchant_id = d.pop("merchantId", UNSET)

        merchant_name = d.pop("merchantName", UNSET)

        missing_fee_cents = d.pop("missingFeeCents", UNSET)

        split_volume_cents = d.pop("splitVolumeCents", UNSET)

        admin_billing_period = cls(
            created_at=created_at,
            due_at=due_at,
            id=id,
            invoice_amount_cents=invoice_amount_cents,
            invoice_payment_url=invoice_payment_url,
            invoice_session_id=invoice_session_id,
            invoice_slug=invoice_slug,
            paid_at=paid_at,
            period_end=period_end,
            period_start=period_start,
            status=status,
            total_volume_cents=total_volume_cents,
            transaction_count=transaction_count,
            updated_at=updated_at,
            merchant_hive_account_name=merchant_hive_account_name,
            merchant_icon_url=merchant_icon_url,
            merchant_id=merchant_id,
            merchant_name=merchant_name,
            missing_fee_cents=missing_fee_cents,
            split_volume_cents=split_volume_cents,
        )

        return admin_billing_period

