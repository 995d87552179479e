"""Payments: create, read, wait for, cancel, resolve and refund them."""

from __future__ import annotations

import builtins
import datetime
import time
from collections.abc import AsyncIterator, Mapping
from typing import Literal

from ..core.api.payments import (
    payments_cancel,
    payments_create,
    payments_delete_metadata,
    payments_delete_note,
    payments_fee_rate,
    payments_get,
    payments_get_status,
    payments_list,
    payments_list_transfers,
    payments_volume,
)
from ..core.api.unmatched import payments_prepare_refund, payments_resolve
from ..core.models import (
    CreatePayment,
    Created,
    CurrentStatus,
    FeeRate,
    Metadata,
    Payment,
    PaymentPage,
    RefundPlan,
    Resolve,
    Transfer,
    Volume,
)
from ..core.types import UNSET, Unset
from .._retry import async_sleep
from ..errors import WaitTimeout
from .resource import AsyncResource, items, key_or_new
from .transport import body

Currency = Literal["HIVE", "HBD"]

_FINAL = ("completed", "failed", "user_cancelled", "system_cancelled")
_FIRST_POLL_SECONDS = 0.5
_LONGEST_POLL_SECONDS = 5.0


class AsyncPayments(AsyncResource):
    async def create(
        self,
        *,
        amount: str,
        currency: Currency,
        description: str,
        redirect_url: str | None = None,
        cancel_url: str | None = None,
        metadata: Mapping[str, str | builtins.list[str]] | None = None,
        expires_in_seconds: int | None = None,
        idempotency_key: str | None = None,
    ) -> Created:
        """Create a payment. Store its id with the order, then send the customer to ``slug_url``.

        ``amount`` has digits in the smallest unit: ``"1500"`` is 1.500. With an ``idempotency_key`` of your own, such as
        the id of the order and the number of the attempt, a repeat of the call, also by another process, has the same
        result. Without one each call gets a new key, which its retries share.
        """
        payment = CreatePayment(
            amount=amount,
            currency=currency,
            description=description,
            redirect_url=redirect_url if redirect_url is not None else UNSET,
            cancel_url=cancel_url if cancel_url is not None else UNSET,
            metadata=Metadata.from_dict(metadata) if metadata is not None else UNSET,
            expires_in_seconds=expires_in_seconds if expires_in_seconds is not None else UNSET,
        )
        key = key_or_new(idempotency_key)
        return body(await payments_create.asyncio_detailed(client=self._core, body=payment, idempotency_key=key))

    async def get(self, id: str) -> Payment:
        """Return a payment with its transfers and exceptions."""
        return body(await payments_get.asyncio_detailed(id, client=self._core))

    async def status(self, id: str) -> CurrentStatus:
        """Return only the status of a payment."""
        return body(await payments_get_status.asyncio_detailed(id, client=self._core))

    async def list(
        self,
        *,
        page: int | Unset = UNSET,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        status: str | Unset = UNSET,
        from_: datetime.datetime | Unset = UNSET,
        to: datetime.datetime | Unset = UNSET,
        currency: Currency | Unset = UNSET,
        min_amount: str | Unset = UNSET,
        max_amount: str | Unset = UNSET,
        unusual: bool | Unset = UNSET,
        ids: str | Unset = UNSET,
        query: str | Unset = UNSET,
    ) -> PaymentPage:
        """Return one page of payments, newest first."""
        found = await payments_list.asyncio_detailed(
            client=self._core,
            page=page,
            limit=limit,
            cursor=cursor,
            status=status,
            from_=from_,
            to=to,
            currency=currency,
            min_amount=min_amount,
            max_amount=max_amount,
            unusual=unusual,
            ids=ids,
            query=query,
        )
        return body(found)

    def list_all(
        self,
        *,
        limit: int = 100,
        status: str | Unset = UNSET,
        from_: datetime.datetime | Unset = UNSET,
        to: datetime.datetime | Unset = UNSET,
        currency: Currency | Unset = UNSET,
        min_amount: str | Unset = UNSET,
        max_amount: str | Unset = UNSET,
        unusual: bool | Unset = UNSET,
        query: str | Unset = UNSET,
    ) -> AsyncIterator[Payment]:
        """Yield every payment that matches, newest first; read page after page of ``limit`` payments."""

        async def read(cursor: str | Unset) -> tuple[builtins.list[Payment], str | None | Unset]:
            page = await self.list(
                limit=limit,
                cursor=cursor,
                status=status,
                from_=from_,
                to=to,
                currency=currency,
                min_amount=min_amount,
                max_amount=max_amount,
                unusual=unusual,
                query=query,
            )
            return page.data, page.next_cursor

        return items(read)

    async def wait_for(self, id: str, *, timeout: float = 300.0) -> Payment:
        """Wait until the status of a payment is final, and return the payment; raise ``WaitTimeout`` after ``timeout``.

        To react to payments in a shop, use webhooks and ``events.follow``, which do not depend on a running process.
        """
        deadline = time.monotonic() + timeout
        poll = _FIRST_POLL_SECONDS
        while True:
            status = (await self.status(id)).status
            if status in _FINAL:
                return await self.get(id)
            left = deadline - time.monotonic()
            if left <= 0:
                raise WaitTimeout(id, status)
            await async_sleep(min(poll, left))
            poll = min(_LONGEST_POLL_SECONDS, poll * 1.5)

    async def cancel(self, id: str) -> Payment:
        """Request the cancellation of a pending payment. An event follows when block time has decided it."""
        return body(await payments_cancel.asyncio_detailed(id, client=self._core))

    def transfers(self, id: str, *, limit: int = 100) -> AsyncIterator[Transfer]:
        """Yield every transfer that names a payment, newest first."""

        async def read(cursor: str | Unset) -> tuple[builtins.list[Transfer], str | None | Unset]:
            found = await payments_list_transfers.asyncio_detailed(id, client=self._core, cursor=cursor, limit=limit)
            page = body(found)
            return page.data, page.next_cursor

        return items(read)

    async def resolve(self, id: str, decision: Resolve) -> Payment:
        """Record the decision about the exceptions of a payment. It moves no money."""
        return body(await payments_resolve.asyncio_detailed(id, client=self._core, body=decision))

    async def prepare_refund(
        self,
        id: str,
        *,
        amount: str | Unset = UNSET,
        currency: Currency | Unset = UNSET,
        to: str | Unset = UNSET,
    ) -> RefundPlan:
        """Return the transfer that refunds a payment, for a wallet to sign."""
        found = await payments_prepare_refund.asyncio_detailed(
            id, client=self._core, amount=amount, currency=currency, to=to
        )
        return body(found)

    async def delete_metadata(self, id: str) -> Payment:
        """Delete the metadata of a finished payment for good."""
        return body(await payments_delete_metadata.asyncio_detailed(id, client=self._core))

    async def delete_note(self, id: str) -> Payment:
        """Delete the note of a decision for good."""
        return body(await payments_delete_note.asyncio_detailed(id, client=self._core))

    async def fee_rate(self) -> FeeRate:
        """Return the fee in percent that new payments get."""
        return body(await payments_fee_rate.asyncio_detailed(client=self._core))

    async def volume(self, *, days: int = 30) -> Volume:
        """Return what was created and completed on each of the last days."""
        return body(await payments_volume.asyncio_detailed(client=self._core, days=str(days)))
