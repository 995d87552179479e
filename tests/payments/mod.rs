//! Payments from creation to their final state, on a shared gateway.

mod floods;
mod lists;
mod paying;

use serde_json::json;

use crate::harness::{Receiver, order, shared};

crate::tests!(
    a_payment_is_created_paid_completed_and_notified,
    both_creation_endpoints_have_their_own_response,
    fields_are_returned_unchanged,
    a_fee_is_rounded_down_and_stored,
    hive_is_valued_at_the_witness_price_and_hbd_at_one_dollar,
    a_payment_is_cancelled_once_by_its_merchant,
    a_finished_payment_cannot_be_cancelled,
    a_payment_keeps_the_account_of_its_creation,
    a_session_has_the_requested_lifetime,
    fixed_paths_are_not_ids,
    metadata_is_deleted_on_request_once_the_payment_is_final,
);

/// Returns every test of this module.
pub(crate) fn all() -> Vec<libtest_mimic::Trial> {
    [tests(), paying::tests(), floods::tests(), lists::tests()].into_iter().flatten().collect()
}

fn metadata_is_deleted_on_request_once_the_payment_is_final() {
    let dev = shared();
    let shop = dev.shop();
    let made = shop.open_with(&json!({
        "amount": "1500", "currency": "HBD", "description": "Mug", "metadata": { "customer": "adalovelace" },
    }));
    let path = format!("/api/public/payments/{}/metadata", made.id);
    let delete = |key: &str| dev.api.request("DELETE", &path).bearer(key).send();
    delete(&shop.key).refused(409, "payment_open");
    delete(&dev.shop().key).refused(404, "not_found");
    let before = shop.cancelled(&made.id);
    let found = || shop.get("/api/public/payments?query=adalovelace").send().ok(200)["data"].as_array().unwrap().len();
    assert_eq!(found(), 1);
    let after = delete(&shop.key).ok(200);
    let mut wanted = before;
    wanted["metadata"] = after["metadata"].clone();
    wanted["updatedAt"] = after["updatedAt"].clone();
    assert_eq!(after, wanted, "the rest stays");
    assert!(!after.to_string().contains("adalovelace"), "{after}");
    assert_eq!((found(), delete(&shop.key).ok(200)), (0, after.clone()));
    assert_eq!(shop.payment(&made.id), after);
    let audit = format!("/api/admin/audit?merchantId={}", shop.id);
    let reported = dev.api.get(&audit).bearer(dev.admin_key()).send().ok(200);
    let reported =
        reported["data"].as_array().unwrap().iter().filter(|entry| entry["action"] == "payment_metadata_deleted");
    assert_eq!(reported.map(|entry| entry["subject"].as_str().unwrap()).collect::<Vec<_>>(), [made.id]);
}

fn a_payment_is_created_paid_completed_and_notified() {
    let dev = shared();
    let receiver = Receiver::start();

    let account = dev.ledger.account("shop");
    let body = json!({ "name": "The Blue Shop", "hiveAccount": account.name });
    let merchant = dev.api.post("/api/public/merchants/register", &body).send().ok(201);
    let (id, key) = (merchant["merchant"]["id"].as_str().unwrap(), merchant["apiKey"].as_str().unwrap());
    let secret = merchant["webhookSecret"].as_str().unwrap();
    let hook_url = json!({ "webhookUrl": receiver.url() });
    dev.api.put(&format!("/api/public/merchants/{id}"), &hook_url).bearer(key).send().ok(200);

    let body = json!({
        "amount": "1500", "currency": "HBD", "description": "A blue mug",
        "redirectUrl": "https://shop.example/thanks", "metadata": { "orderId": "4711" },
    });
    let created = dev.api.post("/api/public/payments", &body).x_api_key(key).send();
    let payment = created.ok(201);
    let payment_id = payment["id"].as_str().unwrap();
    assert_eq!(payment["status"], "pending");
    assert_eq!(payment["checkoutUrl"], format!("{}/checkout/{payment_id}", dev.api.base));
    let path = format!("/api/public/payments/{payment_id}");
    assert_eq!(created.header("location"), Some(format!("{}{path}", dev.api.base).as_str()));

    let alice = dev.demo_account("alice");
    let tx_id = dev.ledger.transfer(&alice, &account.name, "1.500 HBD", &format!("pos-{payment_id}"));

    let hook = receiver.hook(0);
    assert_eq!(hook.head, "POST /hook?shop=7 HTTP/1.1");
    hook.verify(secret);
    let event = hook.json();
    assert_eq!(event["type"], "payment.status_changed");
    assert_eq!(event["id"], hook.header("webhook-id"));
    assert_eq!(event["createdAt"], event["timestamp"]);
    assert_eq!(
        event["data"],
        json!({
            "id": payment_id, "paymentId": payment_id, "merchantId": id,
            "status": "completed", "previousStatus": "pending",
            "providerId": "hive", "internalId": tx_id, "sequence": event["data"]["sequence"],
            "exceptions": [], "metadata": { "orderId": "4711" }, "livemode": false,
        })
    );

    let record = dev.api.get(&path).bearer(key).send().ok(200);
    assert_eq!(record["status"], "completed");
    assert_eq!(record["internalId"], tx_id);
    assert_eq!(record["amountPaid"], "1500");
    assert_eq!(record["amountRemaining"], "0");
    assert!(record["completedAt"].is_string());
    let status = dev.api.get(&format!("{path}/status")).bearer(key).send().ok(200);
    assert_eq!(status, json!({ "id": payment_id, "status": "completed", "completedAt": record["completedAt"] }));
    let transfer = &record["transfers"][0];
    assert_eq!(transfer["txId"], tx_id);
    assert_eq!(transfer["from"], "alice");
    assert_eq!(transfer["to"], account.name);
    assert_eq!(transfer["finality"], "irreversible");
    assert_eq!(transfer["disposition"], "counted");
    assert_eq!(transfer["route"], "wallet");
    assert_eq!(transfer["memoNormalized"], false);
    assert_eq!(receiver.hooks().len(), 1, "one change, one event");
}

fn both_creation_endpoints_have_their_own_response() {
    let shop = shared().shop();
    let base = &shop.api.base;

    let first = shop.api.post("/api/public/payments", &order()).bearer(&shop.key).send();
    let body = first.ok(201);
    let (id, slug) = (body["id"].as_str().unwrap(), body["slug"].as_str().unwrap());
    for member in ["status", "amount", "fee", "net", "description", "expiresAt", "createdAt"] {
        assert!(!body[member].is_null(), "{member} is missing: {body}");
    }
    assert_eq!(body["checkoutUrl"], format!("{base}/checkout/{id}"));
    assert_eq!(
        body["amount"],
        json!({ "value": "1500", "formatted": "1.500 HBD", "currency": "HBD", "usdCents": 150 })
    );
    assert!(id.starts_with("pay_") && id.len() == 30, "{id}");
    assert!(slug.starts_with("a-blue-mug-") && slug.len() == "a-blue-mug-".len() + 26, "{slug}");

    let second = shop.api.post("/api/public/payments/create", &order()).x_api_key(&shop.key).send();
    let body = second.ok(201);
    let (id, slug) = (body["id"].as_str().unwrap(), body["slug"].as_str().unwrap());
    let url = format!("{base}/for/{slug}");
    assert_eq!(body, json!({ "id": id, "slug": slug, "redirectUrl": url, "checkoutUrl": url }));
    assert!(second.header("location").is_some_and(|location| location.ends_with(id)));
    assert_eq!(shop.payment(id)["slug"], slug);
}

fn fields_are_returned_unchanged() {
    let shop = shared().shop();
    let metadata = json!({
        "orderId": "é 🐝 \" \\ /", "tags": ["a", "b", ""], "empty": "", "none": [], "a.b": "c", "__proto__": "x",
    });
    let given = json!({
        "amount": "1", "currency": "HIVE", "description": "Größe <b>42</b> & mehr",
        "redirectUrl": "https://shop.example/ok?a=1&b=2#frag", "cancelUrl": "https://shop.example/no",
        "metadata": metadata,
    });
    let opened = shop.open_with(&given);
    let record = shop.payment(&opened.id);
    for member in ["description", "redirectUrl", "cancelUrl", "metadata"] {
        assert_eq!(record[member], given[member], "{member}");
    }
    assert_eq!(record["redirectionUrl"], given["redirectUrl"]);
    assert_eq!(record["merchantId"], shop.id);
    assert_eq!(record["payTo"], shop.account.name);
    assert_eq!(record["memo"], opened.memo);
    assert_eq!(record["completedAt"], json!(null));
    assert_eq!(record["amount"]["formatted"], "0.001 HIVE");
    assert_eq!(record["livemode"], false);
    assert_eq!(record["exceptions"], json!([]));
    for member in ["createdAt", "expiresAt", "updatedAt"] {
        let time = record[member].as_str().unwrap_or_default();
        assert!(time.len() == "2026-11-20T14:00:00.000Z".len() && time.ends_with('Z'), "{member}: {time}");
    }
}

fn a_fee_is_rounded_down_and_stored() {
    let shop = shared().shop();
    assert_eq!(shop.api.get("/api/public/payments/fee-rate").send().ok(200), json!({ "feePercent": 1.5 }));
    assert_eq!(shop.get("/api/public/payments/fee-rate").send().ok(200), json!({ "feePercent": 1.5 }));
    for (amount, fee, net) in [("1", "0", "1"), ("66", "0", "66"), ("67", "1", "66"), ("1999", "29", "1970")] {
        let mut body = order();
        body["amount"] = json!(amount);
        let made = shop.post("/api/public/payments", &body).send().ok(201);
        assert_eq!((&made["fee"], &made["net"]), (&json!(fee), &json!(net)), "of {amount}");
        let record = shop.payment(made["id"].as_str().unwrap());
        assert_eq!((&record["fee"], &record["net"]), (&json!(fee), &json!(net)), "of {amount}");
    }
}

fn hive_is_valued_at_the_witness_price_and_hbd_at_one_dollar() {
    let shop = shared().shop();
    for (currency, amount, cents) in [("HBD", "1500", 150), ("HBD", "9", 0), ("HIVE", "100000", 2_580)] {
        let body = json!({ "amount": amount, "currency": currency, "description": "worth" });
        let made = shop.post("/api/public/payments", &body).send().ok(201);
        assert_eq!(made["amount"]["usdCents"], cents, "{made}");
        let record = shop.payment(made["id"].as_str().unwrap());
        assert_eq!(record["rateAt"].is_string(), currency == "HIVE", "{record}");
    }
}

fn a_payment_is_cancelled_once_by_its_merchant() {
    let dev = shared();
    let (shop, receiver) = (dev.shop(), Receiver::start());
    shop.set_webhook(&receiver);
    let payment = shop.open_payment();
    let asked = shop.cancel(&payment.id).ok(200);
    assert_eq!((&asked["status"], &asked["cancelRequested"]), (&json!("pending"), &json!(true)));
    assert_eq!(asked["cancelledBy"], "merchant");
    assert_eq!(asked["completedAt"], json!(null));
    let at = |member: &str| engine::time::Timestamp::parse(asked[member].as_str().unwrap()).unwrap();
    assert_eq!(at("cutoff").since(at("cancelRequestedAt")), std::time::Duration::from_millis(1_250), "five blocks");
    let cancelled = shop.until_status(&payment.id, "user_cancelled");
    for member in ["cancelRequested", "cancelRequestedAt", "cancelledBy", "cutoff", "expiresAt"] {
        assert_eq!(cancelled[member], asked[member], "{member}");
    }
    let again = shop.cancel(&payment.id).ok(200);
    assert_eq!(again, cancelled, "a repeat shows the same record");
    let event = receiver.hook(0).json();
    assert_eq!(event["data"]["status"], "user_cancelled");
    assert_eq!(event["data"]["internalId"], json!(null));
    assert_eq!(receiver.hooks().len(), 1);
}

fn a_finished_payment_cannot_be_cancelled() {
    let dev = shared();
    let shop = dev.shop();
    let payment = shop.open_payment();
    dev.ledger.transfer(&dev.demo_account("bob"), &shop.account.name, "1.500 HBD", &payment.memo);
    let before = shop.until_status(&payment.id, "completed");
    shop.cancel(&payment.id).refused(409, "payment_not_pending");
    assert_eq!(shop.payment(&payment.id), before);
}

fn a_payment_keeps_the_account_of_its_creation() {
    let dev = shared();
    let shop = dev.shop();
    let payment = shop.open_payment();
    let other = dev.ledger.account("moved");
    shop.update(&json!({ "hiveAccount": other.name })).ok(200);
    assert_eq!(shop.payment(&payment.id)["payTo"], shop.account.name);
    let later = shop.open_payment();
    assert_eq!(shop.payment(&later.id)["payTo"], other.name);
    let bob = dev.demo_account("bob");
    dev.ledger.transfer(&bob, &shop.account.name, "1.500 HBD", &payment.memo);
    dev.ledger.transfer(&bob, &other.name, "1.500 HBD", &later.memo);
    shop.until_status(&payment.id, "completed");
    shop.until_status(&later.id, "completed");
}

fn a_session_has_the_requested_lifetime() {
    let shop = shared().shop();
    let seconds = |body: &serde_json::Value| {
        let at = |member: &str| engine::time::Timestamp::parse(body[member].as_str().unwrap()).unwrap();
        at("expiresAt").since(at("createdAt")).as_secs()
    };
    let made = shop.post("/api/public/payments", &order()).send().ok(201);
    assert_eq!(seconds(&made), 1_800);
    for lifetime in [60, 86_400] {
        let mut body = order();
        body["expiresInSeconds"] = json!(lifetime);
        assert_eq!(seconds(&shop.post("/api/public/payments", &body).send().ok(201)), lifetime);
    }
    for lifetime in [json!(59), json!(86_401), json!(-1), json!(60.5), json!("60"), json!(true), json!(1e20)] {
        let mut body = order();
        body["expiresInSeconds"] = lifetime;
        shop.post("/api/public/payments", &body).send().wrong(&["expiresInSeconds"]);
    }
}

fn fixed_paths_are_not_ids() {
    let shop = shared().shop();
    assert!(shop.get("/api/public/payments/list").send().ok(200)["data"].is_array());
    assert!(shop.get("/api/public/payments/fee-rate").send().ok(200)["feePercent"].is_number());
    shop.get("/api/public/payments/create").send().refused(405, "method_not_allowed");
    assert_eq!(shop.get("/api/public/merchants/me").send().ok(200)["id"], shop.id);
}
