from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.payment_required_code import check_payment_required_code
from ..models.payment_required_code import PaymentRequiredCode
from ..models.payment_required_x402_version import check_payment_required_x402_version
from ..models.payment_required_x402_version import PaymentRequiredX402Version
from ..models.reason import check_reason
from ..models.reason import Reason
from ..types import UNSET, Unset
from typing import cast

if TYPE_CHECKING:
  from ..models.payment_required_accepts_item import PaymentRequiredAcceptsItem





T = TypeVar("T", bound="PaymentRequired")



@_attrs_define
class PaymentRequired:
    """ 
        Attributes:
            code (PaymentRequiredCode): The class of the error.
            error (str): Why the status is 402: an x402 error, or `payment_required`.
            reason (Reason): The reason of the error. docs/reference/errors.md has the cause and the fix of each.
            request_id (str): The id of the request.
            status_code (int): The HTTP status.
            status_message (str): The message, for people.
            accepts (list[PaymentRequiredAcceptsItem] | Unset): The ways to pay.
            error_message (str | Unset): The same, for people.
            error_reason (str | Unset): Why the payment was refused: a reason from docs/reference/x402.md.
            payer (str | Unset): The account that pays. Present after its signatures were verified.
            session_id (str | Unset): The id of the payment.
            status (str | Unset): The state of the payment.
            success (bool | Unset): Always false in this response.
            tx_id (str | Unset): The id of the transaction on the ledger.
            x_402_version (PaymentRequiredX402Version | Unset): The version of x402.
     """

    code: PaymentRequiredCode
    error: str
    reason: Reason
    request_id: str
    status_code: int
    status_message: str
    accepts: list[PaymentRequiredAcceptsItem] | Unset = UNSET
    error_message: str | Unset = UNSET
    error_reason: str | Unset = UNSET
    payer: str | Unset = UNSET
    session_id: str | Unset = UNSET
    status: str | Unset = UNSET
    success: bool | Unset = UNSET
    tx_id: str | Unset = UNSET
    x_402_version: PaymentRequiredX402Version | Unset = UNSET





    def to_dict(self) -> dict[str, Any]:
        from ..models.payment_required_accepts_item import PaymentRequiredAcceptsItem # noqa: PLC0415
        code: str = self.code

        error = self.error

        reason: str = self.reason

        request_id = self.request_id

        status_code = self.status_code

        status_message = self.status_message

        accepts: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.accepts, Unset):
            accepts = []
            for accepts_item_data in self.accepts:
                accepts_item = accepts_item_data.to_dict()
                accepts.append(accepts_item)



        error_message = self.error_message

        error_reason = self.error_reason

        payer = self.payer

        session_id = self.session_id

        status = self.status

        success = self.success

        tx_id = self.tx_id

        x_402_version: int | Unset = UNSET
        if not isinstance(self.x_402_version, Unset):
            x_402_version = self.x_402_version



        field_dict: dict[str, Any] = {}

        field_dict.update({
            "code": code,
            "error": error,
            "reason": reason,
            "requestId": request_id,
            "statusCode": status_code,
            "statusMessage": status_message,
        })
        if accepts is not UNSET:
            field_dict["accepts"] = accepts
        if error_message is not UNSET:
            field_dict["errorMessage"] = error_message
        if error_reason is not UNSET:
            field_dict["errorReason"] = error_reason
        if payer is not UNSET:
            field_dict["payer"] = payer
        if session_id is not UNSET:
            field_dict["sessionId"] = session_id
        if status is not UNSET:
            field_dict["status"] = status
        if success is not UNSET:
            field_dict["success"] = success
        if tx_id is not UNSET:
            field_dict["txId"] = tx_id
        if x_402_version is not UNSET:
            field_dict["x402Version"] = x_402_version

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.payment_required_accepts_item import PaymentRequiredAcceptsItem # noqa: PLC0415
        d = dict(src_dict)
        code = check_payment_required_code(d.pop("code"))




        error = d.pop("error")

        reason = check_reason(d.pop("reason"))




        request_id = d.pop("requestId")

        status_code = d.pop("statusCode")

        status_message = d.pop("statusMessage")

        _accepts = d.pop("accepts", UNSET)
        accepts: list[PaymentRequiredAcceptsItem] | Unset = UNSET
        if _accepts is not UNSET:
            accepts = []
            for accepts_item_data in _accepts:
                accepts_item = PaymentRequiredAcceptsItem.from_dict(accepts_item_data)



                accepts.append(accepts_item)


        error_message = d.pop("errorMessage", UNSET)

        error_reason = d.pop("errorReason", UNSET)

        payer = d.pop("payer", UNSET)

        session_id = d.pop("sessionId", UNSET)

        status = d.pop("status", UNSET)

        success = d.pop("success", UNSET)

        tx_id = d.pop("txId", UNSET)

        _x_402_version = d.pop("x402Version", UNSET)
        x_402_version: PaymentRequiredX402Version | Unset
        if isinstance(_x_402_version,  Unset):
            x_402_version = UNSET
        else:
            x_402_version = check_payment_required_x402_version(_x_402_version)




        payment_required = cls(
            code=code,
            error=error,
            reason=reason,
            request_id=request_id,
            status_code=status_code,
            status_message=status_message,
            accepts=accepts,
            error_message=error_message,
            error_reason=error_reason,
            payer=payer,
            session_id=session_id,
            status=status,
            success=success,
            tx_id=tx_id,
            x_402_version=x_402_version,
        )

        return payment_required

