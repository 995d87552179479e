//! Webhooks as a merchant's endpoint receives them: signed, repeated until acknowledged, each event once.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Dev, Hook, Receiver, Reply, Shop, Stopwatch, shared, until};

crate::tests!(
    every_request_has_both_signatures_and_its_metadata,
    a_changed_byte_or_another_secret_does_not_verify,
    a_rejected_event_is_repeated_with_the_same_body_and_a_new_signature,
    an_endpoint_gets_missed_events_when_it_is_back,
    a_redirect_is_not_followed,
    an_endpoint_that_returns_410_gets_no_more_requests,
    one_merchants_timeouts_do_not_delay_another,
    events_of_one_payment_are_sent_once_each,
    a_merchant_without_an_endpoint_gets_no_requests,
    a_new_exception_is_an_event_and_a_webhook_if_subscribed,
    a_refund_is_an_event_of_its_payment_and_a_webhook_if_subscribed,
    an_unmatched_transfer_is_an_event_of_those_that_have_proven_the_account,
    an_event_is_sent_to_the_current_endpoint,
    the_header_prefix_is_configurable,
);

fn shop() -> (Shop, Receiver) {
    let (shop, receiver) = (shared().shop(), Receiver::start());
    shop.set_webhook(&receiver);
    (shop, receiver)
}

/// Creates an event by cancelling a payment. Returns the payment's id.
fn event(shop: &Shop) -> String {
    let payment = shop.open_payment();
    shop.cancelled(&payment.id);
    payment.id
}

fn every_request_has_both_signatures_and_its_metadata() {
    let (shop, receiver) = shop();
    let id = event(&shop);
    let hook = receiver.hook(0);
    hook.verify(&shop.secret);
    let body = hook.json();
    assert_eq!(body["data"]["id"], id.as_str());
    assert_eq!(hook.header("content-type"), "application/json");
    assert_eq!(hook.header("x-hivetill-event"), "payment.status_changed");
    assert!(hook.header("x-hivetill-delivery").starts_with("whd_"));
    assert_eq!(hook.header("x-hivetill-attempt"), "1");
    assert!(hook.header("webhook-id").starts_with("evt_"));
    let (ms, s): (u64, u64) =
        (hook.header("x-hivetill-timestamp").parse().unwrap(), hook.header("webhook-timestamp").parse().unwrap());
    assert_eq!(ms / 1_000, s, "one instant, two units");
    assert!(hook.header("user-agent").starts_with("Hivetill"));
    for secret in [&shop.key, &shop.secret] {
        assert!(!String::from_utf8_lossy(&hook.body).contains(secret.as_str()));
    }
}

fn a_changed_byte_or_another_secret_does_not_verify() {
    let ((shop, receiver), other) = (shop(), shared().shop());
    event(&shop);
    let hook = receiver.hook(0);
    let verifies = |hook: &Hook, secret: &str| {
        let standard = standardwebhooks::Webhook::new(secret).unwrap().verify(&hook.body, &hook.headers).is_ok();
        assert_eq!(standard, hook.is_signed_by_legacy_rule("x-hivetill-signature", secret));
        standard
    };
    assert!(verifies(&hook, &shop.secret));
    assert!(!verifies(&hook, &other.secret));
    let mut forged = hook.clone();
    let at = forged.body.len() - 3;
    forged.body[at] ^= 1;
    assert!(!verifies(&forged, &shop.secret));
}

fn a_rejected_event_is_repeated_with_the_same_body_and_a_new_signature() {
    let (shop, receiver) = shop();
    receiver.reply(&[Reply::Status(500)]);
    event(&shop);
    let first = receiver.hook(0);
    let watch = Stopwatch::start();
    let second = receiver.hook(1);
    assert!(watch.elapsed() > Duration::from_secs(3), "5 s and a fifth of them: {:?}", watch.elapsed());
    assert_eq!(first.body, second.body);
    for name in ["webhook-id", "x-hivetill-delivery"] {
        assert_eq!(first.header(name), second.header(name), "{name}");
    }
    assert_eq!(second.header("x-hivetill-attempt"), "2");
    assert_ne!(first.header("x-hivetill-timestamp"), second.header("x-hivetill-timestamp"));
    assert_ne!(first.header("webhook-signature"), second.header("webhook-signature"));
    second.verify(&shop.secret);
    assert_eq!(receiver.hooks_after(Duration::from_millis(300)).len(), 2, "taken, and not sent again");
}

fn an_endpoint_gets_missed_events_when_it_is_back() {
    let (shop, receiver) = shop();
    let address = receiver.address();
    drop(receiver);
    until("the endpoint to be gone", || std::net::TcpStream::connect(address).is_err().then_some(()));
    let id = event(&shop);
    let receiver = Receiver::again_at(address);
    let hook = receiver.hook(0);
    hook.verify(&shop.secret);
    assert_eq!(hook.json()["data"]["id"], id.as_str());
}

fn a_redirect_is_not_followed() {
    let (shop, receiver) = shop();
    let elsewhere = Receiver::start();
    receiver.reply(&[Reply::Redirect(elsewhere.address())]);
    event(&shop);
    receiver.hook(0);
    assert_eq!(receiver.hook(1).header("x-hivetill-attempt"), "2", "a redirect is a failure");
    assert_eq!(elsewhere.hooks().len(), 0);
}

fn an_endpoint_that_returns_410_gets_no_more_requests() {
    let (shop, receiver) = shop();
    receiver.reply(&[Reply::Status(410)]);
    event(&shop);
    receiver.hook(0);
    assert_eq!(receiver.hooks_after(Duration::from_secs(7)).len(), 1, "410 ends it");
}

fn one_merchants_timeouts_do_not_delay_another() {
    let ((mute, silent), (shop, receiver)) = (shop(), shop());
    silent.reply(&[Reply::CloseConnection; 40]);
    for _ in 0..20 {
        event(&mute);
    }
    let watch = Stopwatch::start();
    event(&shop);
    receiver.hook(0);
    assert!(watch.elapsed() < Duration::from_secs(10), "{:?}", watch.elapsed());
}

fn events_of_one_payment_are_sent_once_each() {
    let dev = shared();
    let (shop, receiver) = shop();
    let payments: Vec<_> = (0..10).map(|_| shop.open_payment()).collect();
    let alice = dev.demo_account("alice");
    for payment in &payments {
        dev.ledger.transfer(&alice, &shop.account.name, "1.500 HBD", &payment.memo);
    }
    for payment in &payments {
        shop.until_status(&payment.id, "completed");
    }
    receiver.hook(payments.len() - 1);
    let hooks = receiver.hooks_after(Duration::from_millis(300));
    let mut reported: Vec<String> = hooks.iter().map(|hook| hook.json()["data"]["id"].to_string()).collect();
    let mut ids: Vec<String> = hooks.iter().map(|hook| hook.header("webhook-id").to_owned()).collect();
    for list in [&mut reported, &mut ids] {
        list.sort();
        list.dedup();
        assert_eq!(list.len(), payments.len());
    }
    assert_eq!(hooks.len(), payments.len());
}

fn a_merchant_without_an_endpoint_gets_no_requests() {
    let (shop, receiver) = shop();
    shop.update(&json!({ "webhookUrl": null })).ok(200);
    event(&shop);
    shop.set_webhook(&receiver);
    let id = event(&shop);
    assert_eq!(receiver.hook(0).json()["data"]["id"], id.as_str());
    assert_eq!(receiver.hooks_after(Duration::from_millis(300)).len(), 1);
}

fn an_event_is_sent_to_the_current_endpoint() {
    let (shop, old) = shop();
    old.reply(&[Reply::Status(503)]);
    let id = event(&shop);
    old.hook(0);
    let new = Receiver::start();
    shop.set_webhook(&new);
    assert_eq!(new.hook(0).json()["data"]["id"], id.as_str());
    assert_eq!(old.hooks().len(), 1);
}

fn the_header_prefix_is_configurable() {
    let dev = Dev::with(&["--set=webhooks.header_prefix=X-Shop"]);
    let (shop, receiver) = (dev.shop(), Receiver::start());
    shop.set_webhook(&receiver);
    event(&shop);
    let hook = receiver.hook(0);
    for name in ["x-shop-signature", "x-shop-timestamp", "x-shop-event", "x-shop-delivery", "x-shop-attempt"] {
        hook.header(name);
    }
    assert!(hook.headers.keys().all(|name| !name.as_str().contains("hivetill")), "{:?}", hook.headers);
}

fn a_new_exception_is_an_event_and_a_webhook_if_subscribed() {
    let dev = shared();
    let ((shop, receiver), alice) = (shop(), dev.demo_account("alice"));
    let exceptions = |count: usize| {
        until("the exceptions to be listed", || {
            let list = shop.get("/api/public/events").send().ok(200);
            let events = list["events"].as_array().expect("events").clone();
            let found: Vec<_> = events.into_iter().filter(|event| event["type"] == "payment.exception").collect();
            (found.len() == count).then_some(found)
        })
    };
    assert_eq!(shop.get("/api/public/merchants/me").send().ok(200)["webhookEvents"], json!(["payment.status_changed"]));
    // Transfers after the final state and in the wrong currency are listed and not sent.
    let ended = shop.open_payment();
    shop.cancelled(&ended.id);
    dev.ledger.transfer(&alice, &shop.account.name, "1.500 HBD", &ended.memo);
    let first = exceptions(1).remove(0);
    assert_eq!(first["data"]["newExceptions"], json!(["paid_after_cancel"]));
    assert_eq!((&first["data"]["id"], &first["data"]["status"]), (&json!(ended.id), &json!("user_cancelled")));
    assert_eq!((&first["data"]["sequence"], &shop.payment(&ended.id)["sequence"]), (&json!(3), &json!(3)));
    // A small transfer of a known kind is not reported; a notable part of the amount is, and so is every transfer after
    // a decision.
    dev.ledger.transfer(&alice, &shop.account.name, "0.001 HBD", &ended.memo);
    shop.until(&ended.id, "paid twice", |payment| payment["transferCount"] == 2);
    dev.ledger.transfer(&alice, &shop.account.name, "1.500 HBD", &ended.memo);
    assert_eq!(exceptions(2).remove(1)["data"]["newExceptions"], json!(["paid_after_cancel"]));
    shop.post(&format!("/api/public/payments/{}/resolve", ended.id), &json!({ "kind": "accepted" })).send().ok(200);
    dev.ledger.transfer(&alice, &shop.account.name, "0.001 HBD", &ended.memo);
    assert_eq!(exceptions(3).remove(2)["data"]["newExceptions"], json!(["paid_after_cancel"]));
    let plan = shop.get(&format!("/api/public/payments/{}/refund", ended.id)).send().ok(200);
    assert_eq!(plan["amount"]["formatted"], "0.001 HBD", "what was accepted is not owed again");
    // From now on they are sent, too.
    let events = json!(["payment.status_changed", "payment.exception"]);
    assert_eq!(shop.update(&json!({ "webhookEvents": events })).ok(200)["webhookEvents"], events);
    let paid = shop.open_payment();
    dev.ledger.transfer(&alice, &shop.account.name, "0.001 HIVE", &paid.memo);
    let second = exceptions(4).remove(3);
    assert_eq!(second["data"]["newExceptions"], json!(["wrong_currency"]));
    assert_eq!((&second["data"]["status"], &second["data"]["sequence"]), (&json!("pending"), &json!(2)));
    // An overpayment: the status, and the exception.
    dev.ledger.transfer(&alice, &shop.account.name, "2.000 HBD", &paid.memo);
    let third = exceptions(5).remove(4);
    assert_eq!(third["data"]["newExceptions"], json!(["overpaid"]));
    assert_eq!((&third["data"]["status"], &third["data"]["sequence"]), (&json!("completed"), &json!(4)));
    until("all webhooks to arrive", || (receiver.hooks().len() == 4).then_some(()));
    let mut sent: Vec<_> = receiver.hooks().iter().map(|hook| hook.header("x-hivetill-event").to_owned()).collect();
    sent.sort_unstable();
    assert_eq!(sent, ["payment.exception", "payment.exception", "payment.status_changed", "payment.status_changed"]);
    receiver.hooks().iter().for_each(|hook| hook.verify(&shop.secret));
    for wrong in
        [json!([]), json!(["payment.exception"]), json!(["payment.status_changed", "payment.created"]), json!("all")]
    {
        shop.update(&json!({ "webhookEvents": wrong })).wrong(&["webhookEvents"]);
    }
}

/// Waits until a shop's list has this number of events of a type, and returns them.
#[track_caller]
fn listed(shop: &Shop, kind: &str, count: usize) -> Vec<Value> {
    until("the events to be listed", || {
        let list = shop.get("/api/public/events").send().ok(200);
        let events = list["events"].as_array().expect("events").clone();
        let found: Vec<_> = events.into_iter().filter(|event| event["type"] == kind).collect();
        (found.len() == count).then_some(found)
    })
}

fn a_refund_is_an_event_of_its_payment_and_a_webhook_if_subscribed() {
    let dev = shared();
    let ((shop, receiver), alice) = (shop(), dev.demo_account("alice"));
    let payment = shop.open_payment();
    dev.ledger.transfer(&alice, &shop.account.name, "1.500 HBD", &payment.memo);
    shop.until_status(&payment.id, "completed");
    let memo = format!("refund-{}", payment.id);
    let tx_id = dev.ledger.transfer(&shop.account, "alice", "0.500 HBD", &memo);
    let first = listed(&shop, "refund.completed", 1).remove(0);
    let data = &first["data"];
    let refund = &data["refund"];
    assert_eq!((&refund["txId"], &refund["to"], &refund["opIndex"]), (&json!(tx_id), &json!("alice"), &json!(0)));
    assert_eq!((&refund["value"], &refund["formatted"]), (&json!("500"), &json!("0.500 HBD")));
    assert_eq!((&data["id"], &data["status"], &data["sequence"]), (&json!(payment.id), &json!("completed"), &json!(3)));
    let record = shop.payment(&payment.id);
    assert_eq!((&record["sequence"], &record["refunds"][0]["at"]), (&json!(3), &refund["at"]));
    // From now on they are sent, too.
    shop.update(&json!({ "webhookEvents": ["payment.status_changed", "refund.completed"] })).ok(200);
    dev.ledger.transfer(&shop.account, "alice", "1.000 HBD", &memo);
    let second = listed(&shop, "refund.completed", 2).remove(1);
    until("both webhooks to arrive", || (receiver.hooks().len() == 2).then_some(()));
    let hook = receiver.hook(1);
    hook.verify(&shop.secret);
    assert_eq!((hook.header("x-hivetill-event"), hook.json()), ("refund.completed", second));
}

fn an_unmatched_transfer_is_an_event_of_those_that_have_proven_the_account() {
    let dev = shared();
    let (shop, receiver) = (dev.shop().prove(), Receiver::start());
    let (unproven, alice) = (dev.shop(), dev.demo_account("alice"));
    shop.set_webhook(&receiver);
    shop.update(&json!({ "webhookEvents": ["payment.status_changed", "transfer.unmatched"] })).ok(200);
    for account in [&unproven.account.name, &shop.account.name] {
        dev.ledger.transfer(&alice, account, "1.500 HBD", "a mug");
    }
    let event = listed(&shop, "transfer.unmatched", 1).remove(0);
    let transfer = shop.get("/api/public/unmatched").send().ok(200)["data"][0].clone();
    let data = &event["data"];
    assert_eq!((&data["transferId"], &data["merchantId"]), (&transfer["id"], &json!(shop.id)));
    for member in ["reason", "txId", "opIndex", "blockNum", "blockTime", "from", "to", "memo"] {
        assert_eq!(data[member], transfer[member], "{member}");
    }
    for member in ["value", "formatted", "currency"] {
        assert_eq!(data[member], transfer["amount"][member], "{member}");
    }
    let hook = receiver.hook(0);
    hook.verify(&shop.secret);
    assert_eq!((hook.header("x-hivetill-event"), hook.json()), ("transfer.unmatched", event));
    listed(&unproven, "transfer.unmatched", 0);
}
