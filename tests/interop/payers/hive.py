"""The exact scheme of the Hive ledger for the official Python packages of x402, signed by hive-nectar."""

import secrets

from nectar import Hive
from nectarbase.operations import Transfer

NETWORK = "hive:mainnet"
DECIMALS = 3


class ExactHiveScheme:
    """Signs one transfer for an offer; the gateway broadcasts it."""

    scheme = "exact"

    def __init__(self, account, key, node):
        self._account = account
        tries = {"num_retries": 2, "num_retries_call": 2, "timeout": 20}
        self._hive = Hive(node=[node], keys=[key], nobroadcast=True, expiration=60, **tries)

    def find_default_asset(self, asset, network):
        """HBD is pegged to the dollar, in which the packages cap a payment; HIVE is not."""
        return {"asset": "HBD", "symbol": "HBD", "decimals": DECIMALS} if (asset, network) == ("HBD", NETWORK) else None

    def create_payment_payload(self, requirements, *_):
        nonce = secrets.token_hex(16)
        units = int(requirements.amount)
        amount = f"{units // 10**DECIMALS}.{units % 10**DECIMALS:0{DECIMALS}} {requirements.asset}"
        memo = f"x402:{nonce}"
        transfer = Transfer(**{"from": self._account, "to": requirements.pay_to, "amount": amount, "memo": memo})
        signed = self._hive.finalizeOp(transfer, self._account, "active")
        members = ("ref_block_num", "ref_block_prefix", "expiration", "extensions", "signatures")
        transaction = {name: signed[name] for name in members}
        # The form of condenser_api.
        named = [(entry["type"].removesuffix("_operation"), entry["value"]) for entry in signed["operations"]]
        return {"signedTransaction": {**transaction, "operations": named}, "nonce": nonce}
