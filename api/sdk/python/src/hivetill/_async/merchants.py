"""Merchants: their record, API keys, the proof of their account, and their webhook endpoint."""

from __future__ import annotations

import builtins
import datetime
from collections.abc import AsyncIterator

from ..core.api.billing import billing_me
from ..core.api.merchants import (
    account_proofs_issue_challenge,
    account_proofs_prove,
    api_keys_create,
    api_keys_delete,
    api_keys_list,
    api_keys_roll,
    merchants_cancel_account_change,
    merchants_get,
    merchants_me,
    merchants_register,
    merchants_rotate_webhook_secret,
    merchants_update,
    webhook_deliveries_get,
    webhook_deliveries_list,
    webhook_deliveries_redeliver,
    webhooks_enable,
    webhooks_get_endpoint,
    webhooks_replay,
    webhooks_test,
)
from ..core.models import (
    AccountChallenge,
    AccountProof,
    ApiKey,
    BillingSummary,
    CreateKey,
    Delivery,
    DeliveryWithAttempts,
    EnabledWebhook,
    EnableWebhook,
    IssueChallenge,
    MadeKey,
    Merchant,
    ProvenAccount,
    Register,
    Registered,
    Replayed,
    ReplayWebhooks,
    RollKey,
    RotateSecret,
    Secret,
    TestWebhook,
    UpdateMerchant,
    WebhookEndpoint,
)
from ..core.types import UNSET, Unset
from .resource import AsyncResource, items, key_or_new
from .transport import body


class AsyncMerchants(AsyncResource):
    async def register(self, merchant: Register) -> Registered:
        """Register a merchant. The API key and the webhook secret are returned only once."""
        return body(await merchants_register.asyncio_detailed(client=self._core, body=merchant))

    async def me(self) -> Merchant:
        """Return the merchant of the API key."""
        return body(await merchants_me.asyncio_detailed(client=self._core))

    async def get(self, id: str) -> Merchant:
        """Return a merchant: your own, or any as an admin."""
        return body(await merchants_get.asyncio_detailed(id, client=self._core))

    async def update(self, id: str, changes: UpdateMerchant) -> Merchant:
        """Change the given fields of a merchant."""
        return body(await merchants_update.asyncio_detailed(id, client=self._core, body=changes))

    async def rotate_webhook_secret(self, id: str, *, grace_hours: int = 0) -> Secret:
        """Replace the webhook secret. The new one is returned only once."""
        rotation = RotateSecret(grace_hours=grace_hours)
        return body(await merchants_rotate_webhook_secret.asyncio_detailed(id, client=self._core, body=rotation))

    async def issue_account_challenge(self, id: str, challenge: IssueChallenge | None = None) -> AccountChallenge:
        """Issue the challenge that proves control of the Hive account."""
        wanted = challenge or IssueChallenge()
        return body(await account_proofs_issue_challenge.asyncio_detailed(id, client=self._core, body=wanted))

    async def prove_account(self, id: str, proof: AccountProof) -> ProvenAccount:
        """Prove control of the Hive account with signatures."""
        return body(await account_proofs_prove.asyncio_detailed(id, client=self._core, body=proof))

    async def cancel_account_change(self, id: str) -> Merchant:
        """Cancel a pending change of the Hive account."""
        return body(await merchants_cancel_account_change.asyncio_detailed(id, client=self._core))

    async def billing(self) -> BillingSummary:
        """Return usage and fees of the merchant of the API key."""
        return body(await billing_me.asyncio_detailed(client=self._core))


class AsyncApiKeys(AsyncResource):
    async def list(self, merchant_id: str) -> builtins.list[ApiKey]:
        """Return the API keys of a merchant, without their secrets."""
        return body(await api_keys_list.asyncio_detailed(merchant_id, client=self._core)).data

    async def create(self, merchant_id: str, key: CreateKey) -> MadeKey:
        """Create an API key, which is returned only once."""
        return body(await api_keys_create.asyncio_detailed(merchant_id, client=self._core, body=key))

    async def revoke(self, merchant_id: str, key_id: str) -> builtins.list[ApiKey]:
        """Revoke an API key, and return those that remain."""
        return body(await api_keys_delete.asyncio_detailed(merchant_id, key_id, client=self._core)).data

    async def roll(self, merchant_id: str, key_id: str, *, overlap_hours: int = 0) -> MadeKey:
        """Replace an API key, if the operator allows it."""
        rotation = RollKey(overlap_hours=overlap_hours)
        return body(await api_keys_roll.asyncio_detailed(merchant_id, key_id, client=self._core, body=rotation))


class AsyncWebhookEndpoints(AsyncResource):
    async def get(self, merchant_id: str) -> WebhookEndpoint:
        """Return the health of the endpoint."""
        return body(await webhooks_get_endpoint.asyncio_detailed(merchant_id, client=self._core))

    async def enable(self, merchant_id: str, *, replay_since: datetime.datetime | None = None) -> EnabledWebhook:
        """Enable an endpoint that was disabled."""
        enabling = EnableWebhook(replay_since=replay_since)
        return body(await webhooks_enable.asyncio_detailed(merchant_id, client=self._core, body=enabling))

    async def replay(self, merchant_id: str, since: datetime.datetime) -> Replayed:
        """Send the deliveries that are held or failed since a time."""
        replay = ReplayWebhooks(since=since)
        return body(await webhooks_replay.asyncio_detailed(merchant_id, client=self._core, body=replay))

    async def test(
        self, merchant_id: str, test: TestWebhook | None = None, *, idempotency_key: str | None = None
    ) -> Delivery:
        """Send a test event."""
        wanted, key = test or TestWebhook(), key_or_new(idempotency_key)
        found = await webhooks_test.asyncio_detailed(
            merchant_id, client=self._core, body=wanted, idempotency_key=key
        )
        return body(found)

    def deliveries(
        self,
        merchant_id: str,
        *,
        limit: int = 100,
        status: str | Unset = UNSET,
        event_id: str | Unset = UNSET,
        payment_id: str | Unset = UNSET,
    ) -> AsyncIterator[Delivery]:
        """Yield every delivery that matches, newest first; read page after page of ``limit`` deliveries."""

        async def read(cursor: str | Unset) -> tuple[builtins.list[Delivery], str | None | Unset]:
            found = await webhook_deliveries_list.asyncio_detailed(
                merchant_id,
                client=self._core,
                cursor=cursor,
                limit=limit,
                status=status,
                event_id=event_id,
                payment_id=payment_id,
            )
            page = body(found)
            return page.deliveries, page.next_cursor

        return items(read)

    async def delivery(self, merchant_id: str, delivery_id: str) -> DeliveryWithAttempts:
        """Return a delivery with its attempts."""
        return body(await webhook_deliveries_get.asyncio_detailed(merchant_id, delivery_id, client=self._core))

    async def redeliver(
        self, merchant_id: str, delivery_id: str, *, idempotency_key: str | None = None
    ) -> Delivery:
        """Send the event of a delivery again."""
        found = await webhook_deliveries_redeliver.asyncio_detailed(
            merchant_id, delivery_id, client=self._core, idempotency_key=key_or_new(idempotency_key)
        )
        return body(found)
