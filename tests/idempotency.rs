//! Idempotency keys: one key creates one payment, on either path and with concurrent callers.

use std::{collections::BTreeMap, thread};

use proto::{Caller, IntoRecord};
use serde_json::{Value, json};
use tonic::Code;
use tonic_types::StatusExt;

use crate::{
    grpc::{Port, mug},
    harness::{LedgerProcess, Response, Serve, Shop, folder, order, shared},
};

crate::tests!(
    a_repeated_creation_with_its_key_returns_the_same_payment,
    a_repeated_creation_returns_the_current_payment,
    another_creation_with_the_same_key_is_rejected,
    concurrent_callers_with_one_key_create_one_payment,
    a_rejected_creation_does_not_use_its_key,
    an_invalid_key_is_rejected_by_name,
    a_key_belongs_to_its_merchant,
    the_limit_of_idempotency_keys_applies_to_rest_and_grpc,
    an_operation_without_key_support_rejects_a_key_and_changes_nothing,
);

const CREATE: &str = "/api/public/payments";

fn create(shop: &Shop, path: &str, key: &str, body: &Value) -> Response {
    shop.post(path, body).header("idempotency-key", key).send()
}

fn count(shop: &Shop) -> Value {
    shop.get(CREATE).send().ok(200)["pagination"]["total"].clone()
}

fn a_repeated_creation_with_its_key_returns_the_same_payment() {
    let dev = shared();
    let shop = Shop::open(&dev.api, &dev.ledger);
    let first = create(&shop, CREATE, "order-1", &order());
    let made = first.ok(201);
    assert_eq!(first.header("idempotent-replayed"), None);
    // Quoted, with its members in another order: the same request.
    let same = json!({ "description": "A blue mug", "currency": "HBD", "amount": "1500" });
    let again = create(&shop, CREATE, "\"order-1\"", &same);
    assert_eq!(again.ok(201), made);
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    assert_eq!(again.header("location"), first.header("location"));
    let other_path = create(&shop, "/api/public/payments/create", "order-1", &order());
    assert_eq!(other_path.ok(201)["id"], made["id"], "both paths are one operation");
    assert_eq!(other_path.header("idempotent-replayed"), Some("true"));
    assert_eq!(count(&shop), 1);
}

/// Repeats a creation and checks that the response is the current payment: only its state differs.
#[track_caller]
fn is_now(shop: &Shop, key: &str, body: &Value, made: &Value, status: &str) {
    let again = create(shop, CREATE, key, body);
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    let mut wanted = made.clone();
    wanted["status"] = status.into();
    // The gateway has another port after a restart.
    wanted["checkoutUrl"] = format!("{}/checkout/{}", shop.api.base, made["id"].as_str().expect("an id")).into();
    wanted["slugUrl"] = format!("{}/for/{}", shop.api.base, made["slug"].as_str().expect("a slug")).into();
    assert_eq!(again.ok(201), wanted);
}

fn a_repeated_creation_returns_the_current_payment() {
    let work = folder("replays");
    let setup = LedgerProcess::start(&work.join("chain"), "127.0.0.1:0");
    let data = work.join("data");
    let mut serve = Serve::start(&data, &setup.ledger);
    let mut shop = Shop::open(&serve.api, &setup.ledger);
    let short = json!({ "amount": "1500", "currency": "HBD", "description": "A blue mug", "expiresInSeconds": 60 });
    let bodies = [("open", order()), ("paid", order()), ("cancelled", order()), ("late", short)];
    let made: BTreeMap<&str, Value> =
        bodies.iter().map(|(key, body)| (*key, create(&shop, CREATE, key, body).ok(201))).collect();
    let id = |key: &str| made[key]["id"].as_str().expect("an id");
    let account = shop.account.name.clone();
    let pay = json!({ "from": "alice", "to": account, "amount": "1.500 HBD", "memo": format!("pos-{}", id("paid")) });
    setup.ledger.order("transfer", &pay);
    shop.until_status(id("paid"), "completed");
    shop.cancelled(id("cancelled"));
    setup.ledger.advance(120);
    shop.until_status(id("late"), "system_cancelled");
    for round in ["at once", "after a restart"] {
        let now = ["pending", "completed", "user_cancelled", "system_cancelled"];
        for ((key, body), status) in bodies.iter().zip(now) {
            is_now(&shop, key, body, &made[key], status);
        }
        assert_eq!(count(&shop), 4, "{round}");
        serve.process.kill();
        serve = Serve::start(&data, &setup.ledger);
        shop.api = serve.api.clone();
    }
}

fn another_creation_with_the_same_key_is_rejected() {
    let dev = shared();
    let shop = Shop::open(&dev.api, &dev.ledger);
    create(&shop, CREATE, "order-1", &order()).ok(201);
    let other = json!({ "amount": "1501", "currency": "HBD", "description": "A blue mug" });
    create(&shop, CREATE, "order-1", &other).refused(422, "idempotency_key_reused");
    assert_eq!(count(&shop), 1);
    create(&shop, CREATE, "order-2", &other).ok(201);
}

fn concurrent_callers_with_one_key_create_one_payment() {
    let dev = shared();
    let shop = Shop::open(&dev.api, &dev.ledger);
    let ids: Vec<Value> = thread::scope(|scope| {
        let request = || create(&shop, CREATE, "order-1", &order()).ok(201)["id"].clone();
        let callers: Vec<_> = (0..20).map(|_| scope.spawn(request)).collect();
        callers.into_iter().map(|caller| caller.join().expect("a response")).collect()
    });
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    assert_eq!(count(&shop), 1);
}

fn a_rejected_creation_does_not_use_its_key() {
    let dev = shared();
    let shop = Shop::open(&dev.api, &dev.ledger);
    let wrong = json!({ "amount": "0", "currency": "HBD", "description": "A blue mug" });
    create(&shop, CREATE, "order-1", &wrong).wrong(&["amount"]);
    create(&shop, CREATE, "order-1", &order()).ok(201);
}

fn an_invalid_key_is_rejected_by_name() {
    let dev = shared();
    let shop = Shop::open(&dev.api, &dev.ledger);
    for key in ["\"\"", "two words", &"x".repeat(256)] {
        create(&shop, CREATE, key, &order()).wrong(&["Idempotency-Key"]);
    }
    assert_eq!(count(&shop), 0);
}

fn a_key_belongs_to_its_merchant() {
    let dev = shared();
    let (one, two) = (Shop::open(&dev.api, &dev.ledger), Shop::open(&dev.api, &dev.ledger));
    let first = create(&one, CREATE, "order-1", &order()).ok(201);
    assert_ne!(create(&two, CREATE, "order-1", &order()).ok(201)["id"], first["id"]);
}

fn the_limit_of_idempotency_keys_applies_to_rest_and_grpc() {
    let port = Port::with(&["--set=limits.idempotency_keys=3"]);
    let (engine, shop, other) = (port.engine(), port.dev.shop(), port.dev.shop());
    let by_grpc = |key: &'static str| {
        let key = Some(http::HeaderValue::from_static(key));
        let caller = Caller { idempotency_key: key, ..Caller::with_key(&shop.key) };
        port.run(engine.payments().create_payment(caller.request(mug())))
    };
    let first = create(&shop, CREATE, "order-1", &order()).ok(201);
    let second = by_grpc("order-2").expect("created").into_record().expect("a payment").id;
    create(&shop, CREATE, "order-3", &order()).ok(201);
    let refused = create(&shop, CREATE, "order-4", &order());
    refused.refused(429, "too_many_idempotency_keys");
    assert_eq!(refused.header("retry-after"), Some("300"));
    let refused = by_grpc("order-4").expect_err("one too many");
    let details = refused.get_error_details();
    let reason = details.error_info().map(|info| info.reason.as_str());
    assert_eq!((refused.code(), reason), (Code::ResourceExhausted, Some("TOO_MANY_IDEMPOTENCY_KEYS")));
    let delay = details.retry_info().and_then(|info| info.retry_delay);
    assert_eq!(delay, Some(std::time::Duration::from_secs(300)));
    assert_eq!(count(&shop), 3, "what is refused makes nothing");
    // Existing keys are answered, and requests without a key are not limited.
    assert_eq!(create(&shop, CREATE, "order-1", &order()).ok(201), first);
    assert_eq!(by_grpc("order-2").expect("replayed").into_record().expect("a payment").id, second);
    shop.post(CREATE, &order()).send().ok(201);
    create(&other, CREATE, "order-4", &order()).ok(201);
}

/// Operations that do not support idempotency keys: ignoring the key would suggest that a repeat is safe.
fn an_operation_without_key_support_rejects_a_key_and_changes_nothing() {
    let dev = shared();
    let shop = dev.shop();
    let payment = shop.open_payment();
    let of = |rest: &str| format!("/api/public/merchants/{}{rest}", shop.id);
    let pay = |rest: &str| format!("/api/public/payments/{}{rest}", payment.id);
    let admin = |rest: &str| format!("/api/admin/merchants/{}{rest}", shop.id);
    let unmatched = "/api/public/unmatched/blue.mugs-1-0-0";
    let changes = [
        ("POST", "/api/public/merchants/register".to_owned()),
        ("POST", of("")),
        ("PUT", of("")),
        ("POST", of("/webhook-secret")),
        ("POST", of("/account-proof")),
        ("PUT", of("/account-proof")),
        ("DELETE", of("/pending-account")),
        ("POST", of("/webhook-enable")),
        ("POST", of("/webhook-replay")),
        ("POST", of("/api-keys")),
        ("DELETE", of("/api-keys/key_00000000000000000000000000")),
        ("POST", of("/api-keys/key_00000000000000000000000000/roll")),
        ("POST", pay("/cancel")),
        ("POST", pay("/resolve")),
        ("DELETE", pay("/metadata")),
        ("POST", format!("{unmatched}/assign")),
        ("POST", format!("{unmatched}/ignore")),
        ("POST", format!("/api/admin/merchants/change-status?merchantId={}", shop.id)),
        ("POST", admin("/active")),
        ("POST", admin("/api-key")),
        ("POST", admin("/compliance/clear")),
        ("PUT", admin("/compliance/limits")),
        ("PUT", "/api/admin/billing/tiers".to_owned()),
        ("POST", "/api/admin/billing/generate-invoices".to_owned()),
    ];
    for (method, path) in &changes {
        let key = if path.starts_with("/api/admin/") { dev.admin_key() } else { &shop.key };
        let request = dev.api.request(method, path).bearer(key).header("idempotency-key", "order-1");
        let refused = request.json(&json!({})).send().refused(400, "validation_failed");
        assert_eq!(refused["details"][0]["field"], "Idempotency-Key", "{method} {path}: {refused}");
    }
    shop.get("/api/public/merchants/me").header("idempotency-key", "order-1").send().ok(200);
    assert_eq!(shop.payment(&payment.id)["status"], "pending");
    let keys = shop.get(&of("/api-keys")).send().ok(200);
    assert_eq!(keys.as_array().or(keys["data"].as_array()).map(Vec::len), Some(1), "{keys}");
    // Unknown routes and methods keep their errors.
    let request = |method: &str, path: &str| dev.api.request(method, path).header("idempotency-key", "order-1").send();
    request("POST", "/api/public/nothing").refused(404, "unknown_route");
    request("DELETE", "/api/public/payments").refused(405, "method_not_allowed");
}
