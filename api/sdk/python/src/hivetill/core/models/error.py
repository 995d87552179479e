from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.error_code import check_error_code
from ..models.error_code import ErrorCode
from ..models.reason import check_reason
from ..models.reason import Reason
from ..types import UNSET, Unset
from typing import cast

if TYPE_CHECKING:
  from ..models.error_details_item import ErrorDetailsItem





T = TypeVar("T", bound="Error")



@_attrs_define
class Error:
    """ 
        Attributes:
            code (ErrorCode): The class of the error. It follows from the HTTP status.
            reason (Reason): The reason of the error. docs/reference/errors.md has the cause and the fix of each.
            request_id (str): The id of the request, also in the response header `x-request-id` and in the server's log.
            status_code (int): The HTTP status, repeated for clients that see only the body.
            status_message (str): The message, for people. The wording may change; compare `reason` instead.
            details (list[ErrorDetailsItem] | Unset): One entry for each wrong field that was found. Texts, URLs and
                metadata are checked only once every field has the right type and form: correct what is listed and send again.
            next_cursor (str | Unset): The cursor to continue with after a 410: the start of the list's current epoch.
     """

    code: ErrorCode
    reason: Reason
    request_id: str
    status_code: int
    status_message: str
    details: list[ErrorDetailsItem] | Unset = UNSET
    next_cursor: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)





    def to_dict(self) -> dict[str, Any]:
        from ..models.error_details_item import ErrorDetailsItem # noqa: PLC0415
        code: str = self.code

        reason: str = self.reason

        request_id = self.request_id

        status_code = self.status_code

        status_message = self.status_message

        details: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.details, Unset):
            details = []
            for details_item_data in self.details:
                details_item = details_item_data.to_dict()
                details.append(details_item)



        next_cursor = self.next_cursor


        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({
            "code": code,
            "reason": reason,
            "requestId": request_id,
            "statusCode": status_code,
            "statusMessage": status_message,
        })
        if details is not UNSET:
            field_dict["details"] = details
        if next_cursor is not UNSET:
            field_dict["nextCursor"] = next_cursor

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.error_details_item import ErrorDetailsItem # noqa: PLC0415
        d = dict(src_dict)
        code = check_error_code(d.pop("code"))




        reason = check_reason(d.pop("reason"))




        request_id = d.pop("requestId")

        status_code = d.pop("statusCode")

        status_message = d.pop("statusMessage")

        _details = d.pop("details", UNSET)
        details: list[ErrorDetailsItem] | Unset = UNSET
        if _details is not UNSET:
            details = []
            for details_item_data in _details:
                details_item = ErrorDetailsItem.from_dict(details_item_data)



                details.append(details_item)


        next_cursor = d.pop("nextCursor", UNSET)

        error = cls(
            code=code,
            reason=reason,
            request_id=request_id,
            status_code=status_code,
            status_message=status_message,
            details=details,
            next_cursor=next_cursor,
        )


        error.additional_properties = d
        return error

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
