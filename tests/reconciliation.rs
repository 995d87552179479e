//! Daily reconciliation: a day without differences, a day with one, and who can read the results.

use serde_json::{Value, json};

use crate::harness::{Dev, Shop, Stopwatch, until};

crate::tests!(a_day_is_reconciled_with_the_ledgers_history_and_differences_are_reported);

fn checks(dev: &Dev) -> Vec<Value> {
    let page = dev.api.get("/api/admin/books").bearer(dev.admin_key()).send().ok(200);
    page["data"].as_array().expect("days").clone()
}

fn pass(dev: &Dev, seconds: u64) {
    dev.ledger.order("advance_time", &json!({ "seconds": seconds, "blocks": 30 }));
}

/// Takes a payment; returns its transaction id.
fn sell(dev: &Dev, shop: &Shop) -> String {
    let payment = shop.open_payment();
    dev.ledger.transfer(&dev.demo_account("alice"), &shop.account.name, "1.500 HBD", &format!("pos-{}", payment.id));
    let paid = shop.until_status(&payment.id, "completed");
    paid["internalId"].as_str().expect("a transaction").to_owned()
}

fn a_day_is_reconciled_with_the_ledgers_history_and_differences_are_reported() {
    let dev = Dev::with(&[]);
    let shop = dev.shop();
    // A minute after the registration every transfer of the account is scanned.
    pass(&dev, 120);
    sell(&dev, &shop);
    pass(&dev, 86_400 + 700);
    let well = until("a day is checked", || checks(&dev).pop());
    assert_eq!((&well["outcome"], &well["findings"], &well["obstacle"]), (&json!("ok"), &json!([]), &Value::Null));
    assert!(well["operations"].as_u64() >= Some(1) && well["accounts"].as_u64() >= Some(1), "{well}");

    let tx_id = sell(&dev, &shop);
    dev.ledger.order("node", &json!({ "node": 0, "lie": { "kind": "omitTransfers" } }));
    pass(&dev, 86_400 + 700);
    // The first sign of a difference is not reported: the day is checked again ten minutes later.
    let mut passed = Stopwatch::start();
    let reported = until("the day is checked twice", || {
        if passed.elapsed().as_secs() >= 5 {
            pass(&dev, 700);
            passed = Stopwatch::start();
        }
        checks(&dev).into_iter().find(|day| day["outcome"] == "mismatch")
    });
    let finding = &reported["findings"][0];
    assert_eq!((&finding["account"], &finding["merchantIds"]), (&json!(shop.account.name), &json!([shop.id])));
    assert_eq!((&finding["extraCount"], &finding["missingCount"]), (&json!(1), &json!(0)));
    let amount = json!({ "value": "1500", "formatted": "1.500 HBD", "currency": "HBD" });
    assert_eq!(finding["extra"][0], json!({ "txId": tx_id, "amount": amount }));
    let log = dev.api.get(&format!("/api/admin/audit?merchantId={}", shop.id)).bearer(dev.admin_key()).send().ok(200);
    assert_eq!(log["data"][0]["action"], "books_differ");

    dev.ledger.order("heal", &json!({}));
    let first = dev.api.get("/api/admin/books?limit=1").bearer(dev.admin_key()).send().ok(200);
    let cursor = first["nextCursor"].as_str().expect("more");
    let rest = dev.api.get(&format!("/api/admin/books?cursor={cursor}")).bearer(dev.admin_key()).send().ok(200);
    assert!(rest["data"][0]["from"].as_str() < first["data"][0]["from"].as_str(), "{rest}");
    for cursor in ["-1", "x", "1.5"] {
        let response = dev.api.get(&format!("/api/admin/books?cursor={cursor}")).bearer(dev.admin_key()).send();
        response.wrong(&["cursor"]);
    }
    dev.api.get("/api/admin/books").bearer(&shop.key).send().refused(403, "admin_required");
    dev.api.get("/api/admin/books").send().refused(401, "invalid_api_key");
}
