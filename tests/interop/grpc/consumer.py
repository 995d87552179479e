"""Calls every method of the gRPC interface with good and with bad input, then meets deadlines, cancellation, a killed
server, a broken stream and a graceful stop, as an internal service does.

`consumer.py generated WORK` uses code that grpcio-tools generates into WORK, `consumer.py reflection WORK` what the server
describes itself. The first line of stdin is the context; `ask` has the test that runs this kill or stop the server.
"""

import importlib
import json
import sys
import time

import grpc
from google.protobuf import json_format, message_factory
from google.rpc import code_pb2, error_details_pb2
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from google.protobuf.descriptor_pool import DescriptorPool
from grpc_status import rpc_status

PACKAGE = "hivetill.engine.v1"
mode, work, rows_file = sys.argv[1:]
sys.path.insert(0, work)
context = json.loads(sys.stdin.readline())
values = dict(context)

RETRIES = {
    "methodConfig": [
        {
            "name": [{}],
            "retryPolicy": {
                "maxAttempts": 5,
                "initialBackoff": "1s",
                "maxBackoff": "8s",
                "backoffMultiplier": 2,
                "retryableStatusCodes": ["UNAVAILABLE"],
            },
        }
    ]
}


def connect(config=None):
    options = [("grpc.initial_reconnect_backoff_ms", 200), ("grpc.max_reconnect_backoff_ms", 500)]
    if config:
        options.append(("grpc.service_config", json.dumps(config)))
    return grpc.insecure_channel(context["target"], options=options)


class Authorized(grpc.StreamStreamClientInterceptor):
    """Adds the token to calls of reflection, which have no metadata of their own."""

    def intercept_stream_stream(self, continuation, details, requests):
        headers = (details.metadata or []) + [("authorization", "Bearer " + context["service_token"])]
        return continuation(details._replace(metadata=headers), requests)


reflected = ProtoReflectionDescriptorDatabase(grpc.intercept_channel(connect(), Authorized()))
services = [name for name in reflected.get_services() if name.startswith(PACKAGE)]


def find_generated():
    """Returns what stubs offer: the method's descriptor and how a channel calls it."""
    found = {}
    names = "billing compliance events facades keys maintenance merchants ownership payments reconciliation system unmatched webhooks x402"
    for name in names.split():
        messages = importlib.import_module(f"hivetill.engine.v1.{name}_pb2")
        stubs = importlib.import_module(f"hivetill.engine.v1.{name}_pb2_grpc")
        for service in messages.DESCRIPTOR.services_by_name.values():
            stub = getattr(stubs, service.name + "Stub")
            for method in service.methods:
                call = lambda channel, stub=stub, method=method: getattr(stub(channel), method.name)
                found[f"/{service.full_name}/{method.name}"] = (method, call)
    return found


def find_reflected():
    """The same from the server's descriptions."""
    found = {}
    pool = DescriptorPool(reflected)
    for name in services:
        for method in pool.FindServiceByName(name).methods:
            path = f"/{name}/{method.name}"
            answer = message_factory.GetMessageClass(method.output_type)

            def call(channel, path=path, answer=answer, method=method):
                make = channel.unary_stream if method.server_streaming else channel.unary_unary
                return make(path, lambda message: message.SerializeToString(), answer.FromString)

            found[path] = (method, call)
    return found


methods = find_generated() if mode == "generated" else find_reflected()
with open(rows_file) as file:
    rows = json.load(file)


def headers(who):
    tokens = {"operator": "operator_token", "none": None}
    token = tokens.get(who, "service_token")
    keys = {"shop": "api_key", "admin": "admin_key", "prover": "prover_key"}
    made = [("authorization", "Bearer " + context[token])] if token else []
    key = "sk_live_wrong" if who == "wrong_key" else context.get(keys.get(who))
    return made + ([("x-api-key", key)] if key else [])


def rendered(value):
    if isinstance(value, dict):
        return {name: rendered(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [rendered(inner) for inner in value]
    if isinstance(value, str) and value.startswith("$"):
        return values[value[1:]]
    if isinstance(value, str) and value.startswith("@"):
        return {"@past": context["past"], "@ancient": "1970-01-01T00:00:01Z"}[value]
    return value


def request_of(path, body):
    kind = message_factory.GetMessageClass(methods[path][0].input_type)
    return json_format.ParseDict(rendered(body), kind())


def call(path, body, who, channel, extra=(), timeout=15):
    """Returns the response, or the first message of a stream that is then cancelled."""
    method, find = methods[path]
    answer = find(channel)(request_of(path, body), metadata=headers(who) + list(extra), timeout=timeout)
    if not method.server_streaming:
        return answer
    first = next(answer, None)
    answer.cancel()
    return first


def refused(what, expected, act):
    """Expects a refusal with its code and its details."""
    try:
        act()
    except grpc.RpcError as error:
        assert error.code().name == expected["code"], f"{what}: {error.code()} {error.details()}"
        status = rpc_status.from_call(error)
        assert status is not None, f"{what}: no google.rpc.Status"
        assert code_pb2.Code.Name(status.code) == expected["code"], what
        info, wrong = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest()
        assert any(detail.Unpack(info) for detail in status.details), what
        assert (info.reason, info.domain) == (expected["reason"], "hivetill"), f"{what}: {info}"
        any(detail.Unpack(wrong) for detail in status.details)
        fields = [violation.field for violation in wrong.field_violations]
        assert fields == expected.get("fields", []), f"{what}: {fields}"
        assert all(violation.description for violation in wrong.field_violations), what
        return status
    raise AssertionError(f"{what} was not refused")


def member(message, path):
    for name in path.split("."):
        message = getattr(message, name)
    return message


def ask(word):
    """Has the test that runs this do something with the server, and returns when it is done."""
    print(word, flush=True)
    assert sys.stdin.readline().strip() == "done", word


def every_method(channel):
    listed = {f"/{service}/{m}" for service in services for m in described(service)}
    assert listed == set(methods), listed ^ set(methods)
    assert listed == {row["method"] for row in rows}, listed ^ {row["method"] for row in rows}
    failed = []
    for row in rows:
        path = row["method"]
        try:
            bad = row["bad"]
            who = bad.get("as", row["as"])
            refused(path + " (bad)", bad, lambda: call(path, bad["request"], who, channel))
            if "refused" in row:
                refused(path, row["refused"], lambda: call(path, row["good"], row["as"], channel))
                continue
            answer = call(path, row["good"], row["as"], channel)
            for name, where in row.get("save", {}).items():
                values[name] = member(answer, where)
        except AssertionError as error:
            failed.append(str(error))
        except Exception as error:
            failed.append(f"{path}: {error!r}")
    assert not failed, "\n".join(failed)


def described(service):
    file = reflected.FindFileContainingSymbol(service)
    found = [each for each in file.service if f"{file.package}.{each.name}" == service]
    return [method.name for method in found[0].method]


SERVICE = f"/{PACKAGE}.PaymentService"
EVENTS = f"/{PACKAGE}.EventService"
ORDER = {"amount_units": "1500", "currency": "CURRENCY_HBD", "description": "A blue mug"}


def stream(path, body, channel, timeout=None):
    return methods[path][1](channel)(request_of(path, body), metadata=headers("shop"), timeout=timeout)


def ended(messages):
    """Reads a stream to its end and returns its code."""
    try:
        for _ in messages:
            pass
    except grpc.RpcError as error:
        return error.code()
    return grpc.StatusCode.OK


def deadlines_and_cancellation(channel, payment):
    began = time.monotonic()
    watch = stream(SERVICE + "/WatchPayment", {"payment_id": payment}, channel, timeout=0.5)
    assert ended(watch) == grpc.StatusCode.DEADLINE_EXCEEDED
    assert time.monotonic() - began < 10
    watch = stream(SERVICE + "/WatchPayment", {"payment_id": payment}, channel)
    next(watch)
    watch.cancel()
    assert ended(watch) == grpc.StatusCode.CANCELLED


def events_after(channel, page_token, count):
    """Reads so many events from a stream, and returns them and where to go on."""
    found, messages = [], stream(EVENTS + "/WatchEvents", {"page_token": page_token}, channel, timeout=30)
    try:
        for message in messages:
            page_token = message.next_page_token
            if message.HasField("event"):
                found.append(message.event.id)
            if len(found) >= count:
                break
    finally:
        messages.cancel()
    assert len(found) == count, "as many events as there are"
    return found, page_token


def all_events(channel):
    found, page_token = [], ""
    while True:
        page = call(EVENTS + "/ListEvents", {"page_size": 100, "page_token": page_token}, "shop", channel)
        found, page_token = found + [event.id for event in page.events], page.next_page_token
        if not page.has_more:
            return found


def a_killed_server(channel):
    """A creation is repeated by the channel's own policy and done once; the stream of events goes on without a gap."""
    before = all_events(channel)
    seen, page_token = events_after(channel, "", len(before))
    assert seen == before, (seen, before)
    watch = stream(EVENTS + "/WatchEvents", {"page_token": page_token}, channel)
    next(watch)
    once = [("idempotency-key", f"retry-{mode}")]
    ask("kill")
    assert ended(watch) == grpc.StatusCode.UNAVAILABLE
    # The server is not there: without a policy the call fails, with one it is repeated until it succeeds.
    create = SERVICE + "/CreatePayment"
    try:
        raise AssertionError(call(create, ORDER, "shop", connect()))
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.UNAVAILABLE, error
    retrying = connect(RETRIES)
    begun = methods[create][1](retrying).future(request_of(create, ORDER), metadata=headers("shop") + once, timeout=60)
    ask("start")
    first = begun.result().payment.id
    ask("await")
    again = call(SERVICE + "/CreatePayment", ORDER, "shop", channel, once, timeout=60).payment.id
    assert first == again, "done once"
    call(SERVICE + "/CancelPayment", {"payment_id": first}, "shop", channel)
    added, page_token = events_after(channel, page_token, 1)
    everything = all_events(channel)
    rest, _ = events_after(channel, page_token, len(everything) - len(seen) - 1) if len(everything) > len(seen) + 1 else ([], "")
    assert seen + added + rest == everything, "no gap and nothing twice"


def a_graceful_stop(channel, payment):
    """Returns when the server has said goodbye to every stream."""
    health = channel.unary_stream("/grpc.health.v1.Health/Watch", lambda _: b"", lambda answer: answer)
    serving = health(b"")
    assert next(serving) == b"\x08\x01", "SERVING"
    watch = stream(SERVICE + "/WatchPayment", {"payment_id": payment}, channel)
    next(watch)
    ask("stop")
    assert next(serving) == b"\x08\x02", "NOT_SERVING"
    assert ended(watch) == grpc.StatusCode.UNAVAILABLE


channel = connect()
every_method(channel)
open_payment = call(SERVICE + "/CreatePayment", ORDER, "shop", channel).payment.id
deadlines_and_cancellation(channel, open_payment)
a_killed_server(channel)
a_graceful_stop(channel, open_payment)
print("ok", flush=True)
