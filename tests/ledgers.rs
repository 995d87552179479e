//! Faults of the ledger: expiry, delayed finality, forks, failing nodes. Each test has its own gateway.

use serde_json::{Value, json};

use crate::harness::{Dev, Receiver, Stopwatch, order};

crate::tests!(
    a_session_expires_when_an_irreversible_block_is_later,
    a_transfer_after_the_expiry_is_recorded_and_changes_nothing,
    a_partial_payment_is_recorded_at_the_expiry,
    a_timely_payment_completes_although_the_node_was_down_past_the_expiry,
    expiry_waits_for_the_chain_while_the_page_shows_it,
    a_reversible_transfer_is_shown_and_counts_when_irreversible,
    a_fork_that_removes_a_transfer_orphans_it,
    a_fork_that_moves_a_transfer_counts_it_once,
    without_a_node_only_ledger_dependent_requests_fail,
    a_failing_node_delays_payments_and_loses_none,
    a_lagging_node_is_followed,
);

const PRICE: &str = "1.500 HBD";

/// Returns the order of a payment with a lifetime of one minute.
fn short() -> Value {
    let mut body = order();
    body["expiresInSeconds"] = json!(60);
    body
}

fn a_session_expires_when_an_irreversible_block_is_later() {
    let dev = Dev::start();
    let (shop, receiver) = (dev.shop(), Receiver::start());
    shop.set_webhook(&receiver);
    let (short, long) = (shop.open_with(&short()), shop.open_payment());
    dev.ledger.advance(30);
    dev.until_scanned();
    assert_eq!(shop.payment(&short.id)["status"], "pending");
    dev.ledger.advance(31);
    let expired = shop.until_status(&short.id, "system_cancelled");
    assert_eq!((&expired["completedAt"], &expired["cancelledBy"]), (&json!(null), &json!(null)));
    assert_eq!(shop.payment(&long.id)["status"], "pending");
    let event = receiver.hook(0);
    event.verify(&shop.secret);
    assert_eq!(event.json()["data"]["status"], "system_cancelled");
    assert_eq!(event.json()["data"]["previousStatus"], "pending");
    shop.cancel(&short.id).refused(409, "payment_not_pending");
    let page = dev.api.get(&format!("/for/{}", short.slug)).header("accept", "text/html").send();
    assert!(page.status == 200 && page.text().contains("Expired"), "{}", page.text());
}

fn a_transfer_after_the_expiry_is_recorded_and_changes_nothing() {
    let dev = Dev::start();
    let (shop, receiver) = (dev.shop(), Receiver::start());
    shop.set_webhook(&receiver);
    let payment = shop.open_with(&short());
    dev.ledger.advance(61);
    shop.until_status(&payment.id, "system_cancelled");
    dev.ledger.transfer(&dev.demo_account("alice"), &shop.account.name, PRICE, &payment.memo);
    let late = shop.until(&payment.id, "noted", |p| p["exceptions"] == json!(["paid_late"]));
    assert_eq!(late["status"], "system_cancelled");
    assert_eq!((&late["amountPaid"], &late["amountLate"]), (&json!("0"), &json!("1500")));
    assert_eq!(late["transfers"][0]["disposition"], "late");
    assert_eq!(late["needsAttention"], true);
    assert_eq!(shop.get("/api/public/payments?unusual=true").send().ok(200)["pagination"]["total"], 1);
    receiver.hook(0);
    assert_eq!(receiver.hooks().len(), 1);
}

fn a_partial_payment_is_recorded_at_the_expiry() {
    let dev = Dev::start();
    let shop = dev.shop();
    let payment = shop.open_with(&short());
    dev.ledger.transfer(&dev.demo_account("alice"), &shop.account.name, "0.400 HBD", &payment.memo);
    shop.until(&payment.id, "part-paid", |p| p["amountPaid"] == "400");
    dev.ledger.advance(61);
    let expired = shop.until_status(&payment.id, "system_cancelled");
    assert_eq!(expired["exceptions"], json!(["underpaid"]));
    assert_eq!((&expired["amountPaid"], &expired["amountRemaining"]), (&json!("400"), &json!("1100")));
    assert_eq!(expired["needsAttention"], true);
}

fn a_timely_payment_completes_although_the_node_was_down_past_the_expiry() {
    let dev = Dev::start();
    let (shop, receiver) = (dev.shop(), Receiver::start());
    shop.set_webhook(&receiver);
    let (paid, unpaid, late) = (shop.open_with(&short()), shop.open_with(&short()), shop.open_with(&short()));
    dev.ledger.disconnect(true);
    dev.ledger.auto_produce(false);
    let pay = |memo: &str| {
        let params = json!({ "from": "alice", "to": shop.account.name, "amount": PRICE, "memo": memo });
        dev.ledger.order("transfer", &params);
    };
    pay(&paid.memo);
    dev.ledger.produce(1);
    dev.ledger.advance(3_600);
    pay(&late.memo);
    dev.ledger.produce(30);
    for session in [&paid, &unpaid, &late] {
        assert_eq!(shop.payment(&session.id)["status"], "pending", "the outcome is unknown while the node is down");
    }
    dev.ledger.disconnect(false);
    let done = shop.until_status(&paid.id, "completed");
    assert_eq!(done["exceptions"], json!([]));
    shop.until_status(&unpaid.id, "system_cancelled");
    let late = shop.until(&late.id, "late", |p| p["exceptions"] == json!(["paid_late"]));
    assert_eq!(late["status"], "system_cancelled");
    receiver.hook(2);
    let mut reported: Vec<String> =
        receiver.hooks().iter().map(|hook| hook.json()["data"]["status"].to_string()).collect();
    reported.sort();
    assert_eq!(reported, ["\"completed\"", "\"system_cancelled\"", "\"system_cancelled\""]);
}

fn expiry_waits_for_the_chain_while_the_page_shows_it() {
    let dev = Dev::start();
    let shop = dev.shop();
    let payment = shop.open_with(&short());
    dev.ledger.hold_irreversibility(true);
    dev.ledger.advance(61);
    let over = shop.until(&payment.id, "over", |p| p["expired"] == true);
    assert_eq!(over["status"], "pending");
    let status = dev.api.get(&format!("/for/{}/status", payment.slug)).send().ok(200);
    assert_eq!((&status["phase"], &status["expired"]), (&json!("checking"), &json!(true)));
    shop.cancel(&payment.id).refused(409, "payment_expired");
    let page = dev.api.get(&format!("/for/{}", payment.slug)).header("accept", "text/html").send().text();
    assert!(page.contains("Please do not pay now") && !page.contains("hive://"), "{page}");
    dev.ledger.hold_irreversibility(false);
    shop.until_status(&payment.id, "system_cancelled");
}

fn a_reversible_transfer_is_shown_and_counts_when_irreversible() {
    let dev = Dev::start();
    let (shop, receiver) = (dev.shop(), Receiver::start());
    shop.set_webhook(&receiver);
    let payment = shop.open_payment();
    dev.ledger.hold_irreversibility(true);
    dev.ledger.transfer(&dev.demo_account("alice"), &shop.account.name, PRICE, &payment.memo);
    let seen = shop.until(&payment.id, "seen", |p| p["transfers"][0]["finality"] == "reversible");
    assert_eq!((&seen["status"], &seen["amountPaid"]), (&json!("pending"), &json!("0")));
    shop.cancel(&payment.id).refused(409, "payment_detected");
    dev.api.request("POST", &format!("/for/{}/cancel", payment.slug)).send().refused(409, "payment_detected");
    assert_eq!(dev.api.get(&format!("/for/{}/status", payment.slug)).send().ok(200)["phase"], "seen");
    dev.ledger.produce(5);
    assert_eq!(shop.payment(&payment.id)["status"], "pending");
    assert_eq!(receiver.hooks().len(), 0);
    dev.ledger.hold_irreversibility(false);
    let done = shop.until_status(&payment.id, "completed");
    assert_eq!(done["transfers"].as_array().map(Vec::len), Some(1));
    assert_eq!(done["transfers"][0]["finality"], "irreversible");
    receiver.hook(0);
}

fn a_fork_that_removes_a_transfer_orphans_it() {
    let dev = Dev::start();
    let shop = dev.shop();
    let payment = shop.open_payment();
    dev.ledger.hold_irreversibility(true);
    dev.ledger.auto_produce(false);
    let lost = dev.ledger.transfer(&dev.demo_account("alice"), &shop.account.name, PRICE, &payment.memo);
    dev.ledger.produce(1);
    shop.until(&payment.id, "seen", |p| p["transfers"][0]["finality"] == "reversible");
    dev.ledger.order("fork", &json!({ "depth": 1, "transactions": "drop" }));
    let gone = shop.until(&payment.id, "without it", |p| p["transfers"][0]["finality"] == "orphaned");
    assert_eq!((&gone["status"], &gone["transfers"][0]["txId"]), (&json!("pending"), &json!(lost)));
    dev.ledger.hold_irreversibility(false);
    dev.ledger.produce(5);
    dev.until_scanned();
    assert_eq!(shop.payment(&payment.id)["status"], "pending");
    dev.ledger.transfer(&dev.demo_account("bob"), &shop.account.name, PRICE, &payment.memo);
    dev.ledger.produce(5);
    let done = shop.until_status(&payment.id, "completed");
    assert_eq!((&done["amountPaid"], &done["exceptions"]), (&json!("1500"), &json!([])));

    let other = shop.open_payment();
    dev.ledger.hold_irreversibility(true);
    dev.ledger.transfer(&dev.demo_account("alice"), &shop.account.name, PRICE, &other.memo);
    dev.ledger.produce(1);
    shop.until(&other.id, "seen", |p| p["transfers"][0]["finality"] == "reversible");
    dev.ledger.order("fork", &json!({ "depth": 1, "transactions": "drop" }));
    shop.until(&other.id, "without it", |p| p["transfers"][0]["finality"] == "orphaned");
    assert_eq!(shop.cancel(&other.id).ok(200)["cancelRequested"], true, "nothing is on its way any more");
}

fn a_fork_that_moves_a_transfer_counts_it_once() {
    let dev = Dev::start();
    let (shop, receiver) = (dev.shop(), Receiver::start());
    shop.set_webhook(&receiver);
    let payment = shop.open_payment();
    dev.ledger.hold_irreversibility(true);
    dev.ledger.auto_produce(false);
    dev.ledger.transfer(&dev.demo_account("alice"), &shop.account.name, PRICE, &payment.memo);
    dev.ledger.produce(2);
    shop.until(&payment.id, "seen", |p| p["transfers"][0]["finality"] == "reversible");
    for _ in 0..3 {
        dev.ledger.order("fork", &json!({ "depth": 2, "transactions": "keep" }));
        dev.ledger.produce(1);
    }
    dev.ledger.hold_irreversibility(false);
    dev.ledger.produce(5);
    let done = shop.until_status(&payment.id, "completed");
    assert_eq!((&done["amountPaid"], &done["exceptions"]), (&json!("1500"), &json!([])));
    assert_eq!(done["transfers"].as_array().map(Vec::len), Some(1), "{done}");
    receiver.hook(0);
    assert_eq!(receiver.hooks().len(), 1);
}

fn without_a_node_only_ledger_dependent_requests_fail() {
    let dev = Dev::start();
    let shop = dev.shop();
    let account = dev.ledger.account("later");
    let payment = shop.open_payment();
    dev.ledger.disconnect(true);
    crate::harness::until("the outage to be noticed", || (dev.api.get("/readyz").send().status == 503).then_some(()));
    let watch = Stopwatch::start();
    let body = json!({ "name": "Later", "hiveAccount": account.name });
    let refused = dev.api.post("/api/public/merchants/register", &body).send();
    refused.refused(503, "node_unavailable");
    let retry: u64 = refused.header("retry-after").expect("Retry-After").parse().expect("seconds");
    assert!((1..=120).contains(&retry));
    let moved = shop.update(&json!({ "hiveAccount": account.name }));
    moved.refused(503, "node_unavailable");
    assert!(moved.header("retry-after").is_some());
    assert!(watch.elapsed().as_secs() < 20, "an outage must not hold callers: {:?}", watch.elapsed());

    assert_eq!(dev.api.get("/api/health").send().ok(200)["status"], "degraded");
    assert_eq!(dev.api.get("/livez").send().status, 200);
    assert_eq!(shop.payment(&payment.id)["status"], "pending");
    shop.update(&json!({ "name": "Renamed meanwhile" })).ok(200);
    let made = shop.open_payment();
    shop.cancel(&payment.id).ok(200);
    let page = dev.api.get(&format!("/for/{}", made.slug)).header("accept", "text/html").send();
    assert_eq!(page.status, 200);

    let asked = shop.payment(&payment.id);
    assert_eq!((&asked["status"], &asked["cancelRequested"]), (&json!("pending"), &json!(true)), "no block decides");

    dev.ledger.disconnect(false);
    dev.until_ready();
    shop.until_status(&payment.id, "user_cancelled");
    dev.api.post("/api/public/merchants/register", &body).send().ok(201);
    dev.ledger.transfer(&dev.demo_account("alice"), &shop.account.name, PRICE, &made.memo);
    shop.until_status(&made.id, "completed");
}

fn a_failing_node_delays_payments_and_loses_none() {
    let dev = Dev::start();
    let shop = dev.shop();
    let alice = dev.demo_account("alice");
    for fault in [json!({ "garbage": true }), json!({ "httpStatus": 500 }), json!({ "httpStatus": 429 })] {
        let payment = shop.open_payment();
        let params = json!({ "from": "alice", "to": shop.account.name, "amount": PRICE, "memo": payment.memo });
        dev.ledger.order("node", &fault);
        dev.ledger.order("transfer", &params);
        dev.ledger.produce(6);
        assert_eq!(shop.payment(&payment.id)["status"], "pending");
        dev.ledger.order("heal", &json!({}));
        let done = shop.until_status(&payment.id, "completed");
        assert_eq!(done["amountPaid"], "1500", "{fault}");
    }
    dev.ledger.order("node", &json!({ "delayMs": 400 }));
    let payment = shop.open_payment();
    dev.ledger.transfer(&alice, &shop.account.name, PRICE, &payment.memo);
    shop.until_status(&payment.id, "completed");
}

fn a_lagging_node_is_followed() {
    let dev = Dev::start();
    let shop = dev.shop();
    let payment = shop.open_payment();
    dev.ledger.order("node", &json!({ "lagBlocks": 8 }));
    let params = json!({ "from": "alice", "to": shop.account.name, "amount": PRICE, "memo": payment.memo });
    dev.ledger.order("transfer", &params);
    dev.ledger.produce(30);
    let done = shop.until_status(&payment.id, "completed");
    assert_eq!(done["amountPaid"], "1500");
    dev.ledger.order("node", &json!({ "lagBlocks": 0 }));
    let next = shop.open_payment();
    dev.ledger
        .order("transfer", &json!({ "from": "bob", "to": shop.account.name, "amount": PRICE, "memo": next.memo }));
    shop.until_status(&next.id, "completed");
}
