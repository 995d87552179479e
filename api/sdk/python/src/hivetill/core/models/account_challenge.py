from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime

if TYPE_CHECKING:
  from ..models.account_challenge_transfer import AccountChallengeTransfer





T = TypeVar("T", bound="AccountChallenge")



@_attrs_define
class AccountChallenge:
    """ 
        Attributes:
            action (str): `verify`, `change to <account>` or `cancel change`.
            digest (str): The SHA-256 of `text` in hex.
            expires_at (datetime.datetime): When the challenge expires.
            hive_account (str): The account that must sign.
            issued_at (datetime.datetime): When the challenge was issued.
            nonce (str): The single-use part of the text.
            signatures (int): The number of keys that have signed.
            text (str): The text to sign; the signature is over its SHA-256.
            transfer (AccountChallengeTransfer): A transfer of the account to itself, as an alternative to signatures.
     """

    action: str
    digest: str
    expires_at: datetime.datetime
    hive_account: str
    issued_at: datetime.datetime
    nonce: str
    signatures: int
    text: str
    transfer: AccountChallengeTransfer





    def to_dict(self) -> dict[str, Any]:
        from ..models.account_challenge_transfer import AccountChallengeTransfer # noqa: PLC0415
        action = self.action

        digest = self.digest

        expires_at = self.expires_at.isoformat()

        hive_account = self.hive_account

        issued_at = self.issued_at.isoformat()

        nonce = self.nonce

        signatures = self.signatures

        text = self.text

        transfer = self.transfer.to_dict()


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "action": action,
            "digest": digest,
            "expiresAt": expires_at,
            "hiveAccount": hive_account,
            "issuedAt": issued_at,
            "nonce": nonce,
            "signatures": signatures,
            "text": text,
            "transfer": transfer,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.account_challenge_transfer import AccountChallengeTransfer # noqa: PLC0415
        d = dict(src_dict)
        action = d.pop("action")

        digest = d.pop("digest")

        expires_at = datetime.datetime.fromisoformat(d.pop("expiresAt"))




        hive_account = d.pop("hiveAccount")

        issued_at = datetime.datetime.fromisoformat(d.pop("issuedAt"))




        nonce = d.pop("nonce")

        signatures = d.pop("signatures")

        text = d.pop("text")

        transfer = AccountChallengeTransfer.from_dict(d.pop("transfer"))




        account_challenge = cls(
            action=action,
            digest=digest,
            expires_at=expires_at,
            hive_account=hive_account,
            issued_at=issued_at,
            nonce=nonce,
            signatures=signatures,
            text=text,
            transfer=transfer,
        )

        return account_challenge

