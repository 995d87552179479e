"""A shop's day with the client that openapi-python-client generates from /openapi.json: create, get, list, cancel,
events, and a refusal by its reason.

    HIVETILL_API=http://127.0.0.1:8080 HIVETILL_API_KEY=sk_live_… python journey.py FOLDER_OF_THE_CLIENT
"""

import os
import sys
import time

sys.path.insert(0, sys.argv[1])

from generated import AuthenticatedClient  # noqa: E402
from generated.api.events import events_list  # noqa: E402
from generated.api.payments import payments_cancel, payments_create, payments_get, payments_list  # noqa: E402
from generated.models import CreatePayment, Error, Metadata, Reason  # noqa: E402

client = AuthenticatedClient(base_url=os.environ["HIVETILL_API"], token=os.environ["HIVETILL_API_KEY"])

order = {"amount": "1500", "currency": "HBD", "description": "A blue mug", "metadata": {"orderId": "py-1"}}
body = CreatePayment.from_dict(order)
created = payments_create.sync(client=client, body=body, idempotency_key="py-1-attempt-1")
assert created is not None and not isinstance(created, Error), created
assert created.status == "pending"
repeated = payments_create.sync(client=client, body=body, idempotency_key="py-1-attempt-1")
assert repeated.id == created.id

payment = payments_get.sync(id=created.id, client=client)
assert payment.amount.formatted == "1.500 HBD", payment
assert isinstance(payment.metadata, Metadata) and payment.metadata["orderId"] == "py-1"
page = payments_list.sync(client=client, status="pending", limit=10)
assert created.id in [each.id for each in page.data]

wrong = CreatePayment.from_dict({**order, "amount": "0"})
refused = payments_create.sync_detailed(client=client, body=wrong)
assert refused.status_code == 400
assert refused.parsed.reason == Reason.VALIDATION_FAILED
assert refused.parsed.details[0].field == "amount"

assert payments_cancel.sync(id=created.id, client=client).cancel_requested
deadline = time.monotonic() + 60
while True:
    events = [event for event in events_list.sync(client=client, limit=100).events if event.data.id == created.id]
    if events:
        assert events[0].data.status == "user_cancelled", events
        break
    assert time.monotonic() < deadline, "no event of the cancellation"
    time.sleep(0.1)
print("ok")
