//! `hivetill listen`: events reach a local URL as signed webhooks, also after lost connections; and `hivetill trigger`
//! produces every event that it names.

use std::{
    io::{Read, Write},
    net::TcpListener,
};

use serde_json::{Value, json};

use crate::harness::{Dev, Process, Receiver, Relay, Reply, Shop, background, shared, until};

crate::tests!(
    events_are_forwarded_as_webhooks_signed_with_the_printed_secret,
    nothing_is_missed_or_repeated_while_connections_break,
    a_receiver_that_fails_delays_no_other_event,
    stored_events_of_some_types_are_forwarded_with_the_secret_of_the_shop,
    listen_refuses_what_cannot_succeed,
    each_trigger_produces_its_event,
    an_unknown_trigger_lists_the_names,
    trigger_refuses_real_money,
);

/// Starts `listen` for a shop; returns it with its first line.
#[track_caller]
fn listen(shop: &Shop, api: &str, to: &str, more: &[&str]) -> (Process, Value) {
    let line = ["listen", "--json", "--forward-to", to, "--api", api, "--api-key", shop.key.as_str()];
    let mut process = Process::start(&line.iter().chain(more).collect::<Vec<_>>());
    let first = process.ready();
    assert_eq!((&first["merchantId"], &first["forwardTo"]), (&shop.id.as_str().into(), &to.into()));
    (process, first)
}

/// Returns the lines that `listen` has printed about events.
fn forwarded(process: &Process) -> Vec<Value> {
    let lines = process.printed().into_iter().filter_map(|line| serde_json::from_str::<Value>(&line).ok());
    lines.filter(|line| line["cursor"].is_string()).collect()
}

/// Waits until as many events were forwarded.
#[track_caller]
fn until_forwarded(process: &Process, count: usize) -> Vec<Value> {
    until(&format!("{count} events"), || Some(forwarded(process)).filter(|lines| lines.len() >= count))
}

/// Returns the events of a shop, oldest first.
#[track_caller]
fn events(shop: &Shop) -> Vec<Value> {
    let list = shop.get("/api/public/events?limit=100").send().ok(200);
    list["events"].as_array().expect("a list").clone()
}

/// Cancels a new payment, which makes one event.
#[track_caller]
fn make_event(shop: &Shop) -> String {
    let payment = shop.open_payment();
    shop.cancelled(&payment.id);
    payment.id
}

fn events_are_forwarded_as_webhooks_signed_with_the_printed_secret() {
    let (shop, receiver) = (shared().shop(), Receiver::start());
    let (mut process, first) = listen(&shop, &shop.api.base, &receiver.url(), &[]);
    let id = make_event(&shop);
    let lines = until_forwarded(&process, 1);
    let hooks = receiver.hooks();
    let [hook] = hooks.as_slice() else { panic!("one webhook: {hooks:?}") };
    hook.verify(first["webhookSecret"].as_str().expect("a secret"));
    assert_ne!(first["webhookSecret"], shop.secret.as_str(), "a secret of its own");
    let event = hook.json();
    assert_eq!(events(&shop), std::slice::from_ref(&event));
    assert_eq!((&event["data"]["id"], hook.header("x-hivetill-event")), (&id.into(), "payment.status_changed"));
    assert_eq!(hook.header("webhook-id"), event["id"]);
    assert_eq!((hook.header("content-type"), hook.header("x-hivetill-attempt")), ("application/json", "1"));
    let [line] = lines.as_slice() else { panic!("one line: {lines:?}") };
    assert_eq!((&line["type"], &line["id"], &line["status"]), (&event["type"], &event["id"], &json!(200)));
    assert!(process.stop().success(), "a signal is no failure");
}

fn nothing_is_missed_or_repeated_while_connections_break() {
    let (shop, receiver) = (shared().shop(), Receiver::start());
    let relay = Relay::before(&shop.api);
    let (process, _) = listen(&shop, &relay.url(), &receiver.url(), &[]);
    make_event(&shop);
    until_forwarded(&process, 1);
    relay.cut();
    for _ in 0..3 {
        make_event(&shop);
    }
    let during = relay.connections();
    relay.mend();
    until_forwarded(&process, 4);
    assert!(relay.connections() > during, "it has connected again");
    make_event(&shop);
    until_forwarded(&process, 5);
    drop(relay);
    // Connections that break in the middle of a message, again and again.
    let flaky = Relay::breaking(&shop.api, 2_000);
    let other = Receiver::start();
    let (again, _) = listen(&shop, &flaky.url(), &other.url(), &["--after", "0"]);
    let lines = until_forwarded(&again, 5);
    let stored: Vec<Value> = events(&shop).iter().map(|event| event["id"].clone()).collect();
    for received in [receiver.hooks(), other.hooks()] {
        let ids: Vec<Value> = received.iter().map(|hook| hook.json()["id"].clone()).collect();
        assert_eq!(ids, stored);
    }
    assert!(flaky.connections() > 2, "connections have broken");
    // The cursor of a line continues behind its event.
    let (third, cursor) = (Receiver::start(), lines[2]["cursor"].as_str().expect("a cursor"));
    let (rest, _) = listen(&shop, &shop.api.base, &third.url(), &["--after", cursor]);
    let ids: Vec<Value> = until_forwarded(&rest, 2).iter().map(|line| line["id"].clone()).collect();
    assert_eq!(ids, stored[3..]);
}

fn a_receiver_that_fails_delays_no_other_event() {
    let (shop, receiver) = (shared().shop(), Receiver::start());
    receiver.reply(&[Reply::Status(500), Reply::CloseConnection]);
    let (process, _) = listen(&shop, &shop.api.base, &receiver.url(), &[]);
    for _ in 0..3 {
        make_event(&shop);
    }
    let lines = until_forwarded(&process, 3);
    assert_eq!(lines[0]["status"], 500);
    assert!(lines[1]["error"].is_string() && lines[1]["status"].is_null(), "{lines:?}");
    assert_eq!(lines[2]["status"], 200);
    let ids: Vec<Value> = lines.iter().map(|line| line["id"].clone()).collect();
    assert_eq!(ids, events(&shop).iter().map(|event| event["id"].clone()).collect::<Vec<_>>());
}

fn stored_events_of_some_types_are_forwarded_with_the_secret_of_the_shop() {
    let (shop, receiver) = (shared().shop(), Receiver::start());
    let payment = shop.open_payment();
    shared().ledger.transfer(&shared().ledger.account("payer"), &shop.account.name, "2.000 HBD", &payment.memo);
    until("both events", || (events(&shop).len() == 2).then_some(()));
    let more = ["--after", "0", "--events", "payment.exception", "--secret", shop.secret.as_str()];
    let (process, first) = listen(&shop, &shop.api.base, &receiver.url(), &more);
    assert!(first["webhookSecret"].is_null(), "{first}");
    until_forwarded(&process, 1);
    let hooks = receiver.hooks();
    let [hook] = hooks.as_slice() else { panic!("one webhook: {hooks:?}") };
    hook.verify(&shop.secret);
    assert_eq!(hook.json()["type"], "payment.exception");
    assert!(process.printed().iter().all(|line| !line.contains(&shop.secret)), "the secret of the shop is not printed");
}

fn listen_refuses_what_cannot_succeed() {
    let (shop, to) = (shared().shop(), "http://127.0.0.1:9/hook");
    let refused = |api: &str, key: &str, more: &[&str]| {
        let line = ["listen", "--forward-to", to, "--api", api, "--api-key", key];
        let ended = Process::start(&line.iter().chain(more).collect::<Vec<_>>()).finish();
        assert!(!ended.stderr.contains(&shop.key), "{ended:?}");
        (ended.code, ended.stderr)
    };
    let (code, text) = refused(&shop.api.base, &format!("sk_live_{}", "0".repeat(48)), &[]);
    assert!(code == Some(1) && text.contains("invalid_api_key"), "{text}");
    let (code, text) = refused("http://127.0.0.1:9", &shop.key, &[]);
    assert!(code == Some(1) && text.contains("the gateway is unreachable"), "{text}");
    let (code, text) = refused(&shop.api.base, &shop.key, &["--after", "999999999"]);
    assert!(code == Some(1) && text.contains("cursor_out_of_range"), "{text}");
    let (code, text) = refused(&shop.api.base, &shop.key, &["--events", "payment.created"]);
    assert!(code == Some(2) && text.contains("payment.status_changed, payment.exception"), "{text}");
    let (code, text) = refused(&shop.api.base, &shop.key, &["--secret", "secret"]);
    assert!(code == Some(2) && text.contains("whsec_"), "{text}");
}

/// What `trigger` is expected to print for each name: the type, and a member of the data with its value. Those that move
/// the clock come last.
const TRIGGERS: [(&str, &str, &str, &str); 16] = [
    ("payment.status_changed", "payment.status_changed", "status", "completed"),
    ("payment.completed", "payment.status_changed", "status", "completed"),
    ("payment.user_cancelled", "payment.status_changed", "status", "user_cancelled"),
    ("payment.exception", "payment.exception", "newExceptions", "overpaid"),
    ("payment.overpaid", "payment.exception", "newExceptions", "overpaid"),
    ("payment.underpaid", "payment.exception", "newExceptions", "underpaid"),
    ("payment.wrong_currency", "payment.exception", "newExceptions", "wrong_currency"),
    ("payment.self_transfer", "payment.exception", "newExceptions", "self_transfer"),
    ("payment.paid_again", "payment.exception", "newExceptions", "paid_again"),
    ("payment.paid_after_cancel", "payment.exception", "newExceptions", "paid_after_cancel"),
    ("x402.settled", "x402.settled", "resource", "https://shop.example/report"),
    ("refund.completed", "refund.completed", "status", "completed"),
    ("transfer.unmatched", "transfer.unmatched", "reason", "no_session"),
    ("merchant.account_change", "merchant.account_change", "change", "requested"),
    ("payment.system_cancelled", "payment.status_changed", "status", "system_cancelled"),
    ("payment.paid_late", "payment.exception", "newExceptions", "paid_late"),
];

fn each_trigger_produces_its_event() {
    let dev = Dev::start();
    let merchant = &dev.startup["merchant"];
    let (key, id) = (merchant["apiKey"].as_str().expect("a key"), merchant["id"].as_str().expect("an id"));
    for (name, kind, member, value) in TRIGGERS {
        let line = ["trigger", name, "--json", "--api", &dev.api.base, "--api-key", key];
        let ledger = ["--control", &dev.ledger.control.base, "--node", &dev.ledger.rpc.base, "--metadata=orderId=A-1"];
        let ended = Process::start(&line.iter().chain(&ledger).collect::<Vec<_>>()).finish();
        assert!(ended.success, "{name}: {ended:?}");
        let event: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{name}: {ended:?}"));
        let data = &event["data"];
        assert_eq!(event["type"], kind, "{name}: {event}");
        let expected = if member == "newExceptions" { json!([value]) } else { json!(value) };
        assert_eq!(data[member], expected, "{name}: {event}");
        if data["paymentId"].is_string() {
            assert_eq!(data["metadata"], json!({ "orderId": "A-1" }), "{name}");
        }
        let stored = dev.api.get(&format!("/api/public/events/{}", event["id"].as_str().expect("an id")));
        assert_eq!(stored.bearer(key).send().ok(200), event, "{name}");
    }
    let record = dev.api.get(&format!("/api/public/merchants/{id}")).bearer(key).send().ok(200);
    assert_eq!((&record["hiveAccount"], &record["pendingAccount"]), (&merchant["account"], &Value::Null), "restored");
}

fn an_unknown_trigger_lists_the_names() {
    let ended = Process::start(&["trigger", "payment.created", "--api-key", "k"]).finish();
    assert_eq!(ended.code, Some(2), "{ended:?}");
    for (name, ..) in TRIGGERS {
        assert!(ended.stderr.contains(name), "{name}: {ended:?}");
    }
}

fn trigger_refuses_real_money() {
    // A gateway of the main network, as far as it is asked.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let api = format!("http://{}", listener.local_addr().expect("bound"));
    background(move || {
        for mut stream in listener.incoming().flatten() {
            let body = json!({ "id": "mer_1", "hiveAccount": "shop", "network": "mainnet" }).to_string();
            let _ = stream.read(&mut [0; 4_096]);
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length:";
            let _ = write!(stream, "{head} {}\r\n\r\n{body}", body.len());
        }
    });
    let ended = Process::start(&["trigger", "payment.completed", "--api", &api, "--api-key", "k"]).finish();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("the gateway follows the network mainnet"), "{ended:?}");
}
