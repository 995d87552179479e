"""The journeys of a shop with the Python SDK, as a strict project that installed its wheel. Prints the name of each
journey that it has finished. journey.ts has the same journeys. The synchronous form is generated from this one.
"""

from __future__ import annotations

import asyncio
import http.server
import json
import os
import threading
import time
import urllib.request
from collections.abc import AsyncIterator, Callable
from typing import TypeVar

import httpx

from calls import AsyncCall, Call
from hivetill import (
    ApiError,
    AsyncHivetill,
    AuthenticationError,
    ConflictError,
    ConnectionFailed,
    Disconnect,
    HivetillError,
    NotFoundError,
    PermissionDenied,
    Retry,
    SignatureError,
    ValidationError,
    WaitTimeout,
    verify_webhook,
)
from hivetill.core.api.payments import payments_export
from hivetill.models import CreateKey, Created, Payment, PaymentEvent, Resolve, UpdateMerchant, X402Request

T = TypeVar("T")
E = TypeVar("E", bound=BaseException)

BASE_URL = os.environ["HIVETILL_API"]
API_KEY = os.environ["HIVETILL_API_KEY"]
MERCHANT_ID = os.environ["HIVETILL_MERCHANT"]
ACCOUNT = os.environ["HIVETILL_ACCOUNT"]


async def order(
    hivetill: AsyncHivetill, *, amount: str = "1500", description: str = "A blue mug", key: str | None = None
) -> Created:
    return await hivetill.payments.create(
        amount=amount, currency="HBD", description=description, idempotency_key=key
    )


def transfer(memo: str) -> None:
    """Transfer play money to the shop."""
    params = {"from": "alice", "to": ACCOUNT, "amount": "1.500 HBD", "memo": memo}
    call = {"jsonrpc": "2.0", "id": 1, "method": "control.transfer", "params": params}
    with urllib.request.urlopen(os.environ["HIVETILL_CONTROL"], json.dumps(call).encode()) as response:
        assert response.status == 200


async def until(what: str, look: AsyncCall[T | None]) -> T:
    """Return what ``look`` finds; look again until it finds something."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        found = await look()
        if found is not None:
            return found
        await asyncio.sleep(0.1)
    raise AssertionError(f"no {what}")


async def collect(items: AsyncIterator[T]) -> list[T]:
    return [item async for item in items]


async def refused(kind: type[E], call: AsyncCall[object]) -> E:
    """Return the error that a call raises."""
    try:
        await call()
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__}")


def fails(kind: type[E], call: Call[object]) -> E:
    """Return the error that a function raises at once."""
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__}")


class Faulty(httpx.AsyncBaseTransport):
    """Real connections, and what a test puts between."""

    def __init__(self, handle: Callable[[int, httpx.Request, httpx.Response | None], httpx.Response | None]) -> None:
        self.requests: list[httpx.Request] = []
        self._handle = handle
        self._real = httpx.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        count = len(self.requests)
        instead = self._handle(count, request, None)
        if instead is not None:
            return instead
        response = await self._real.handle_async_request(request)
        await response.aread()
        return self._handle(count, request, response) or response


async def a_payment_is_created_paid_and_waited_for(hivetill: AsyncHivetill) -> None:
    created = await hivetill.payments.create(
        amount="1500", currency="HBD", description="A blue mug", metadata={"orderId": "A-1", "sizes": ["S", "M"]}
    )
    assert created.status == "pending"
    assert created.amount.formatted == "1.500 HBD"
    error = await refused(WaitTimeout, lambda: hivetill.payments.wait_for(created.id, timeout=0))
    assert error.status == "pending"
    transfer(f"pos-{created.id}")
    paid: Payment = await hivetill.payments.wait_for(created.id)
    assert paid.status == "completed"
    assert paid.metadata and paid.metadata.to_dict() == {"orderId": "A-1", "sizes": ["S", "M"]}
    assert (await hivetill.payments.status(created.id)).status == "completed"
    assert [each.from_ for each in await collect(hivetill.payments.transfers(created.id))] == ["alice"]


async def a_creation_whose_response_is_lost_creates_one_payment(hivetill: AsyncHivetill) -> None:
    ids: list[str] = []
    retries: list[Retry] = []

    def lose(count: int, request: httpx.Request, response: httpx.Response | None) -> httpx.Response | None:
        if response is not None:
            ids.append(response.json()["id"])
            if count == 1:
                raise httpx.ReadError("the connection was reset")
        return None

    lossy = Faulty(lose)
    async with AsyncHivetill(BASE_URL, API_KEY, transport=lossy, on_retry=retries.append) as unlucky:
        created = await order(unlucky, description="Lost")
    assert ids == [created.id, created.id]
    assert len({request.headers["idempotency-key"] for request in lossy.requests}) == 1
    assert [(each.attempt, each.status, each.method) for each in retries] == [(1, None, "POST")]
    again = await order(hivetill, key="A-2-attempt-1")
    assert (await order(hivetill, key="A-2-attempt-1")).id == again.id
    error = await refused(ValidationError, lambda: order(hivetill, amount="1", key="A-2-attempt-1"))
    assert error.reason == "idempotency_key_reused"


async def a_rate_limit_is_waited_for(hivetill: AsyncHivetill) -> None:
    def limited(seconds: str) -> httpx.Response:
        return httpx.Response(429, json={"reason": "rate_limited"}, headers={"retry-after": seconds})

    retries: list[Retry] = []
    once = Faulty(lambda count, _, response: limited("1") if count == 1 and response is None else None)
    async with AsyncHivetill(BASE_URL, API_KEY, transport=once, on_retry=retries.append) as client:
        assert (await client.merchants.me()).id == MERCHANT_ID
    assert [(each.delay_seconds, each.status) for each in retries] == [(1.0, 429)]
    async with AsyncHivetill(BASE_URL, API_KEY, transport=Faulty(lambda *_: limited("3600"))) as closed:
        error = await refused(ApiError, lambda: closed.merchants.me())
    assert error.retry_after_seconds == 3_600


async def a_request_that_is_not_safe_to_repeat_is_not_repeated(hivetill: AsyncHivetill) -> None:
    def broken(count: int, request: httpx.Request, response: httpx.Response | None) -> httpx.Response | None:
        raise httpx.ReadError("the connection was reset")

    transport = Faulty(broken)
    async with AsyncHivetill(BASE_URL, API_KEY, transport=transport) as client:
        creation = CreateKey(scopes=["payments:read"])
        error = await refused(ConnectionFailed, lambda: client.api_keys.create(MERCHANT_ID, creation))
    assert API_KEY not in str(error)
    assert len(transport.requests) == 1


async def lists_are_read_page_after_page(hivetill: AsyncHivetill) -> None:
    made: list[str] = []
    for _ in range(5):
        made.insert(0, (await order(hivetill, description="Listed")).id)
    listed = await collect(hivetill.payments.list_all(limit=2, query="Listed", status="pending"))
    assert [each.id for each in listed] == made
    page = await hivetill.payments.list(limit=2, page=1)
    assert len(page.data) == 2
    assert page.pagination.limit == 2
    exported = await payments_export.asyncio_detailed(client=hivetill.core, format_="json")
    assert len(json.loads(exported.content)) >= 5


async def a_refusal_names_the_field(hivetill: AsyncHivetill) -> None:
    error = await refused(ValidationError, lambda: order(hivetill, amount="0"))
    assert isinstance(error, HivetillError)
    assert (error.status, error.reason, error.field) == (400, "validation_failed", "amount")
    assert "amount" in str(error) and error.request_id.startswith("req_")
    await refused(NotFoundError, lambda: hivetill.payments.get("pay_00000000000000000000000000"))
    async with AsyncHivetill(BASE_URL, "sk_live_" + "0" * 48) as foreign:
        await refused(AuthenticationError, lambda: foreign.merchants.me())
    await refused(PermissionDenied, lambda: hivetill.merchants.get("mer_00000000000000000000000000"))
    fails(HivetillError, lambda: AsyncHivetill(BASE_URL, "sk_live_\n"))
    fails(HivetillError, lambda: AsyncHivetill("ftp://gateway"))


class Hook(http.server.BaseHTTPRequestHandler):
    """Records webhooks."""

    received: list[tuple[dict[str, str], bytes]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.received.append((dict(self.headers.items()), body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        pass


async def a_webhook_is_verified_in_both_families(hivetill: AsyncHivetill) -> None:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hook)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/hook"
    await hivetill.merchants.update(MERCHANT_ID, UpdateMerchant(webhook_url=url))
    old = os.environ["HIVETILL_WEBHOOK_SECRET"]
    new = (await hivetill.merchants.rotate_webhook_secret(MERCHANT_ID, grace_hours=1)).webhook_secret
    sent = await hivetill.webhook_endpoints.test(MERCHANT_ID)

    async def received() -> tuple[dict[str, str], bytes] | None:
        return Hook.received[0] if Hook.received else None

    headers, body = await until("webhook", received)
    server.shutdown()
    for prefix in ("x-hivetill-", "webhook-"):
        family = {name: value for name, value in headers.items() if name.lower().startswith(prefix)}
        for secret in (new, old, ["whsec_AAAA", old]):
            event = verify_webhook(body, family, secret)
            assert event.id == sent.event_id
            assert isinstance(event, PaymentEvent) and event.type_ == "payment.status_changed"
        now = time.time()
        refusals: list[tuple[str, Callable[[], object]]] = [
            ("no_match", lambda: verify_webhook(body + b" ", family, old)),
            ("no_match", lambda: verify_webhook(body, family, "whsec_AAAA")),
            ("timestamp_out_of_tolerance", lambda: verify_webhook(body, family, old, now=now + 301)),
            ("timestamp_out_of_tolerance", lambda: verify_webhook(body, family, old, now=now - 60, tolerance_seconds=10)),
            ("no_signature", lambda: verify_webhook(body, {}, old)),
        ]
        for problem, verify in refusals:
            assert fails(SignatureError, verify).problem == problem
        verify_webhook(body.decode(), list(family.items()), old, now=now + 200)
        fails(HivetillError, lambda: verify_webhook(body, family, "secret"))

    async def delivered() -> str | None:
        log = await collect(hivetill.webhook_endpoints.deliveries(MERCHANT_ID, event_id=sent.event_id))
        return next((each.id for each in log if each.status == "delivered"), None)

    delivery = await hivetill.webhook_endpoints.delivery(MERCHANT_ID, await until("delivery", delivered))
    assert len(delivery.attempt_log) == 1
    assert (await hivetill.webhook_endpoints.get(MERCHANT_ID)).url == url
    await hivetill.merchants.update(MERCHANT_ID, UpdateMerchant(webhook_url=None))


async def a_stream_resumes_without_a_gap(hivetill: AsyncHivetill) -> None:
    start = (await hivetill.events.list(limit=100)).next_cursor
    ids = [(await order(hivetill)).id for _ in range(6)]
    for id in ids:
        await hivetill.payments.cancel(id)
    seen: list[str] = []
    disconnects: list[Disconnect] = []

    async def read(client: AsyncHivetill, after: str, enough: int) -> str:
        stream = client.events.follow(after=after, on_disconnect=disconnects.append)
        async for followed in stream:
            seen.append(followed.event.id)
            if len(seen) >= enough:
                return followed.cursor
        raise AssertionError("the stream has no end")

    # Its connections break after some 2,000 bytes.
    async with AsyncHivetill(os.environ["HIVETILL_FLAKY_API"], API_KEY) as flaky:
        cursor = await read(flaky, start, 4)
        await read(flaky, cursor, len(ids))
    events = await hivetill.events.list(after=start, limit=100)
    assert seen == [event.id for event in events.events]
    assert len(set(seen)) == len(ids)
    assert disconnects, "no connection broke"
    event = await hivetill.events.get(seen[0])
    assert isinstance(event, PaymentEvent) and event.data.status == "user_cancelled"
    async with AsyncHivetill(BASE_URL, "sk_live_" + "0" * 48) as foreign:
        await refused(AuthenticationError, lambda: collect(foreign.events.follow()))


async def an_unmatched_transfer_is_assigned(hivetill: AsyncHivetill) -> None:
    id, memo = (await order(hivetill)).id, f"by {MERCHANT_ID}"
    transfer(memo)

    async def transferred() -> str | None:
        found = await collect(hivetill.unmatched.list_all(status="open"))
        return next((each.id for each in found if each.memo == memo), None)

    unmatched = await until("unmatched transfer", transferred)
    assert (await hivetill.unmatched.get(unmatched)).from_ == "alice"
    assert any(each.payment.id == id for each in (await hivetill.unmatched.candidates(unmatched)).data)
    assigned = await hivetill.unmatched.assign(unmatched, id)
    assert assigned.exceptions == ["manual"]
    assert (await hivetill.payments.wait_for(id)).status == "completed"
    await refused(ConflictError, lambda: hivetill.payments.cancel(id))
    refund = await hivetill.payments.prepare_refund(id, amount="500", to="alice")
    assert refund.memo == f"refund-{id}"
    resolved = await hivetill.payments.resolve(id, Resolve(kind="accepted", note="assigned by hand"))
    assert not resolved.needs_attention


async def keys_and_the_record_of_a_merchant_are_managed(hivetill: AsyncHivetill) -> None:
    updated = await hivetill.merchants.update(MERCHANT_ID, UpdateMerchant(name="The mugs"))
    assert updated.name == "The mugs"
    made = await hivetill.api_keys.create(MERCHANT_ID, CreateKey(scopes=["payments:read"], name="reports"))
    async with AsyncHivetill(BASE_URL, made.api_key) as reader:
        assert (await reader.merchants.me()).id == MERCHANT_ID
        assert (await refused(PermissionDenied, lambda: order(reader))).reason == "insufficient_scope"
        assert any(each.id == made.key.id for each in await hivetill.api_keys.list(MERCHANT_ID))
        left = await hivetill.api_keys.revoke(MERCHANT_ID, made.key.id)
        assert all(each.id != made.key.id for each in left)
        await refused(AuthenticationError, lambda: reader.merchants.me())
    assert (await hivetill.payments.fee_rate()).fee_percent >= 0
    assert len((await hivetill.payments.volume(days=7)).days) == 7
    assert (await hivetill.merchants.billing()).merchant_id == MERCHANT_ID


async def a_signed_payment_is_verified_and_settled(hivetill: AsyncHivetill) -> None:
    payment = X402Request.from_dict(json.loads(os.environ["HIVETILL_X402"]))
    session = str(payment.session_id)
    async with AsyncHivetill(BASE_URL) as open:
        assert any(kind.scheme == "exact" for kind in (await open.x402.supported()).kinds)
        assert (await open.x402.health()).status == "ok"
        empty = X402Request.from_dict({"paymentPayload": {}, "sessionId": session})
        assert not (await open.x402.verify(empty)).is_valid
        assert (await open.x402.verify(payment)).to_dict() == {"isValid": True, "payer": "alice"}
    settled = await hivetill.x402.settle(payment)
    assert settled.success, settled
    assert (await hivetill.payments.wait_for(session)).internal_id == settled.tx_id
    assert (await hivetill.x402.settle(payment)).to_dict() == {**settled.to_dict(), "replayed": True}
    assert await collect(hivetill.x402.sales()) == []


JOURNEYS = [
    a_signed_payment_is_verified_and_settled,
    a_payment_is_created_paid_and_waited_for,
    a_creation_whose_response_is_lost_creates_one_payment,
    a_rate_limit_is_waited_for,
    a_request_that_is_not_safe_to_repeat_is_not_repeated,
    lists_are_read_page_after_page,
    a_refusal_names_the_field,
    a_webhook_is_verified_in_both_families,
    a_stream_resumes_without_a_gap,
    an_unmatched_transfer_is_assigned,
    keys_and_the_record_of_a_merchant_are_managed,
]


async def main() -> None:
    async with AsyncHivetill(BASE_URL, API_KEY) as hivetill:
        for journey in JOURNEYS:
            await journey(hivetill)
            print(journey.__name__, flush=True)
