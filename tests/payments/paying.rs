//! Transfers that customers send: too little, too much, twice, in the wrong currency, with text around the memo.

use serde_json::{Value, json};

use crate::harness::{Dev, Receiver, Shop, shared};

crate::tests!(
    partial_transfers_add_up,
    two_transfers_in_one_transaction_add_up,
    an_overpayment_is_accepted_and_reported,
    a_second_full_transfer_is_recorded_and_changes_nothing,
    a_wrong_currency_is_recorded_and_never_counts,
    a_transfer_from_the_shop_to_itself_never_counts,
    text_around_the_memo_is_ignored,
    memos_without_a_session_pay_none,
    a_transfer_to_another_account_is_not_credited,
    a_transfer_in_flight_at_a_cancellation_completes_the_payment,
    a_transfer_after_the_cancellation_is_recorded,
    concurrent_payments_each_get_their_own_transfer,
);

const PRICE: &str = "1.500 HBD";

/// Returns the exceptions of a record.
fn labels(payment: &Value) -> Vec<&str> {
    payment["exceptions"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Returns the dispositions of a record's transfers.
fn dispositions(payment: &Value) -> Vec<&str> {
    let transfers = payment["transfers"].as_array().into_iter().flatten();
    transfers.filter_map(|transfer| transfer["disposition"].as_str()).collect()
}

/// Pays another session of the shop after the transfers of a test: once it is completed, all of them have been read.
fn until_read(shop: &Shop) {
    let (dev, mark) = (shared(), shop.open_payment());
    dev.ledger.transfer(&dev.demo_account("carol"), &shop.account.name, PRICE, &mark.memo);
    shop.until_status(&mark.id, "completed");
}

fn partial_transfers_add_up() {
    let dev = shared();
    let (shop, receiver) = (dev.shop(), Receiver::start());
    shop.set_webhook(&receiver);
    let (payment, alice) = (shop.open_payment(), dev.demo_account("alice"));
    dev.ledger.transfer(&alice, &shop.account.name, "0.400 HBD", &payment.memo);
    let part = shop.until(&payment.id, "part-paid", |p| p["amountPaid"] == "400");
    assert_eq!((&part["status"], &part["amountRemaining"]), (&json!("pending"), &json!("1100")));
    assert_eq!(labels(&part), ["underpaid"]);
    shop.cancel(&payment.id).refused(409, "payment_detected");
    let last = dev.ledger.transfer(&alice, &shop.account.name, "1.100 HBD", &payment.memo);
    let whole = shop.until_status(&payment.id, "completed");
    assert_eq!(labels(&whole), [""; 0]);
    assert_eq!((&whole["amountPaid"], &whole["amountRemaining"]), (&json!("1500"), &json!("0")));
    assert_eq!(whole["internalId"], last, "the transfer that crosses the sum pays");
    assert_eq!(receiver.hook(0).json()["data"]["status"], "completed");
    until_read(&shop);
    let of_this = |hook: &crate::harness::Hook| hook.json()["data"]["id"] == payment.id.as_str();
    assert_eq!(receiver.hooks().iter().filter(|hook| of_this(hook)).count(), 1, "a part is no change of state");
}

fn two_transfers_in_one_transaction_add_up() {
    let dev = shared();
    let shop = dev.shop();
    let payment = shop.open_payment();
    let (to, memo) = (shop.account.name.as_str(), payment.memo.as_str());
    let transfers = [(to, "1.000 HBD", memo), (to, "0.500 HBD", memo)];
    let tx_id = dev.ledger.try_transfers(&dev.demo_account("alice"), &transfers).unwrap();
    let whole = shop.until_status(&payment.id, "completed");
    assert_eq!(labels(&whole), [""; 0]);
    let places: Vec<_> = whole["transfers"].as_array().unwrap().iter().map(|t| (&t["txId"], &t["opIndex"])).collect();
    assert_eq!(places, [(&json!(tx_id), &json!(0)), (&json!(tx_id), &json!(1))]);
}

fn an_overpayment_is_accepted_and_reported() {
    let dev = shared();
    let shop = dev.shop();
    let payment = shop.open_payment();
    dev.ledger.transfer(&dev.demo_account("alice"), &shop.account.name, "1.700 HBD", &payment.memo);
    let whole = shop.until_status(&payment.id, "completed");
    assert_eq!(labels(&whole), ["overpaid"]);
    assert_eq!((&whole["amountPaid"], &whole["amountOverpaid"]), (&json!("1700"), &json!("200")));
    assert_eq!(whole["needsAttention"], true);
}

fn a_second_full_transfer_is_recorded_and_changes_nothing() {
    let dev = shared();
    let (shop, receiver) = (dev.shop(), Receiver::start());
    shop.set_webhook(&receiver);
    let payment = shop.open_payment();
    let first = dev.ledger.transfer(&dev.demo_account("alice"), &shop.account.name, PRICE, &payment.memo);
    let done = shop.until_status(&payment.id, "completed");
    dev.ledger.transfer(&dev.demo_account("bob"), &shop.account.name, PRICE, &payment.memo);
    let again = shop.until(&payment.id, "paid again", |p| labels(p).contains(&"paid_again"));
    assert_eq!(again["status"], "completed");
    assert_eq!((&again["completedAt"], &again["internalId"]), (&done["completedAt"], &json!(first)));
    assert_eq!(dispositions(&again), ["counted", "surplus"]);
    assert_eq!(again["amountOverpaid"], "1500");
    until_read(&shop);
    let statuses: Vec<Value> = receiver.hooks().iter().map(|hook| hook.json()["data"]["id"].clone()).collect();
    assert_eq!(statuses.iter().filter(|id| **id == payment.id.as_str()).count(), 1, "completed once, notified once");
}

fn a_wrong_currency_is_recorded_and_never_counts() {
    let dev = shared();
    let shop = dev.shop();
    let payment = shop.open_payment();
    dev.ledger.transfer(&dev.demo_account("alice"), &shop.account.name, "1.500 HIVE", &payment.memo);
    let wrong = shop.until(&payment.id, "noted", |p| labels(p).contains(&"wrong_currency"));
    assert_eq!((&wrong["status"], &wrong["amountPaid"]), (&json!("pending"), &json!("0")));
    dev.ledger.transfer(&dev.demo_account("alice"), &shop.account.name, PRICE, &payment.memo);
    let right = shop.until_status(&payment.id, "completed");
    assert_eq!(labels(&right), ["wrong_currency"]);
    assert_eq!(dispositions(&right), ["wrong_currency", "counted"]);
    assert_eq!(right["transfers"][0]["amount"]["formatted"], "1.500 HIVE");
}

fn a_transfer_from_the_shop_to_itself_never_counts() {
    let dev = shared();
    let shop = dev.shop();
    let payment = shop.open_payment();
    dev.ledger.transfer(&shop.account, &shop.account.name, PRICE, &payment.memo);
    let own = shop.until(&payment.id, "noted", |p| labels(p).contains(&"self_transfer"));
    assert_eq!((&own["status"], &own["amountPaid"]), (&json!("pending"), &json!("0")));
    assert_eq!(dispositions(&own), ["self"]);
}

fn text_around_the_memo_is_ignored() {
    let dev = shared();
    let (shop, alice) = (dev.shop(), dev.demo_account("alice"));
    let dress: [fn(&str) -> String; 7] = [
        str::to_owned,
        |memo| format!(" {memo} "),
        |memo| format!("for the mug: {memo}, thanks!"),
        str::to_uppercase,
        |memo| format!("{memo}\n{memo}"),
        |memo| format!("({memo})"),
        |memo| format!("\u{200b}{memo} — ☕"),
    ];
    for dressed in dress {
        let payment = shop.open_payment();
        let memo = dressed(&payment.memo);
        dev.ledger.transfer(&alice, &shop.account.name, PRICE, &memo);
        let done = shop.until_status(&payment.id, "completed");
        assert_eq!(done["transfers"][0]["memo"], memo);
        assert_eq!(labels(&done), [""; 0], "{memo}");
    }
    let plain = shop.open_payment();
    dev.ledger.transfer(&alice, &shop.account.name, PRICE, &format!("paying {}", plain.memo));
    let done = shop.until_status(&plain.id, "completed");
    assert_eq!(done["transfers"][0]["memoNormalized"], true);
}

fn memos_without_a_session_pay_none() {
    let dev = shared();
    let (shop, alice) = (dev.shop(), dev.demo_account("alice"));
    let (payment, other) = (shop.open_payment(), shop.open_payment());
    let id = &payment.id;
    for memo in [
        String::new(),
        "thanks".to_owned(),
        id.clone(),
        format!("#{}", payment.memo),
        format!("pos-{id}x"),
        format!("xpos-{id}"),
        format!("pos-{}", &id[..29]),
        format!("pos_{id}"),
        format!("{} {}", payment.memo, other.memo),
        format!("pos-{}", id.replace("pay_", "mer_")),
        "pos-pay_00000000000000000000000000".to_owned(),
    ] {
        dev.ledger.transfer(&alice, &shop.account.name, PRICE, &memo);
    }
    until_read(&shop);
    for session in [&payment, &other] {
        let record = shop.payment(&session.id);
        assert_eq!((&record["status"], &record["transfers"]), (&json!("pending"), &json!([])), "{record}");
    }
}

fn a_transfer_to_another_account_is_not_credited() {
    let dev = shared();
    let (shop, third_party) = (dev.shop(), dev.shop());
    let payment = shop.open_payment();
    dev.ledger.transfer(&dev.demo_account("alice"), &third_party.account.name, PRICE, &payment.memo);
    until_read(&third_party);
    let record = shop.payment(&payment.id);
    assert_eq!((&record["status"], &record["transfers"]), (&json!("pending"), &json!([])), "{record}");
}

fn a_transfer_in_flight_at_a_cancellation_completes_the_payment() {
    let dev = Dev::start();
    let (shop, receiver) = (dev.shop(), Receiver::start());
    shop.set_webhook(&receiver);
    let alice = dev.demo_account("alice");
    for by_merchant in [true, false] {
        let payment = shop.open_payment();
        // Broadcast, and in no block yet.
        dev.ledger.auto_produce(false);
        dev.ledger.transfer(&alice, &shop.account.name, PRICE, &payment.memo);
        if by_merchant {
            shop.cancel(&payment.id).ok(200);
        } else {
            let response = shop.api.request("POST", &format!("/for/{}/cancel", payment.slug)).send().ok(200);
            assert_eq!(response, json!({ "id": payment.id, "status": "pending", "cancelRequested": true }));
        }
        dev.ledger.auto_produce(true);
        let paid = shop.until_status(&payment.id, "completed");
        assert_eq!((labels(&paid), &paid["amountPaid"]), (vec![], &json!("1500")), "{paid}");
        assert_eq!((&paid["cancelRequested"], &paid["cancelledBy"]), (&json!(false), &json!(null)));
        shop.cancel(&payment.id).refused(409, "payment_not_pending");
    }
    let statuses: Vec<_> = (0..2).map(|n| receiver.hook(n).json()["data"]["status"].clone()).collect();
    assert_eq!(statuses, ["completed", "completed"], "one webhook each, at the decision");
}

fn a_transfer_after_the_cancellation_is_recorded() {
    let dev = shared();
    let shop = dev.shop();
    let payment = shop.open_payment();
    shop.cancel(&payment.id).ok(200);
    shop.until_status(&payment.id, "user_cancelled");
    dev.ledger.transfer(&dev.demo_account("alice"), &shop.account.name, PRICE, &payment.memo);
    let late = shop.until(&payment.id, "noted", |p| labels(p).contains(&"paid_after_cancel"));
    assert_eq!((&late["status"], &late["amountPaid"]), (&json!("user_cancelled"), &json!("0")));
    assert_eq!((dispositions(&late), &late["amountLate"]), (vec!["after_cancel"], &json!("1500")));
    assert_eq!(late["needsAttention"], true);
}

fn concurrent_payments_each_get_their_own_transfer() {
    let dev = shared();
    let shop = dev.shop();
    let payments: Vec<_> = (0..20).map(|_| shop.open_payment()).collect();
    let alice = dev.demo_account("alice");
    let mut paid: Vec<(String, String)> = payments
        .iter()
        .rev()
        .map(|payment| {
            let tx_id = dev.ledger.transfer(&alice, &shop.account.name, PRICE, &payment.memo);
            (payment.id.clone(), tx_id)
        })
        .collect();
    for (id, tx_id) in paid.drain(..) {
        let done = shop.until_status(&id, "completed");
        assert_eq!((&done["internalId"], &done["amountPaid"]), (&json!(tx_id), &json!("1500")));
    }
}
