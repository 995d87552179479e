//! Additional webhook endpoints of a merchant: each with its event types, its secret, its health and its deliveries.

use serde_json::{Value, json};

use crate::harness::{Receiver, Reply, Response, Shop, shared, until};

crate::tests!(
    an_event_goes_to_each_endpoint_that_subscribes_to_its_type,
    an_endpoint_is_updated_disabled_and_deleted,
    an_endpoint_has_its_own_health_and_its_own_replay,
    the_secret_of_an_endpoint_is_rotated,
    invalid_endpoints_name_their_field,
    a_merchant_has_at_most_sixteen_additional_endpoints,
    endpoints_are_accessible_to_their_merchant_only,
);

fn path(shop: &Shop, rest: &str) -> String {
    format!("/api/public/merchants/{}/webhook-endpoints{rest}", shop.id)
}

/// Creates an endpoint; returns its id and its secret.
#[track_caller]
fn created(shop: &Shop, receiver: &Receiver, events: &[&str]) -> (String, String) {
    let body = json!({ "url": receiver.url(), "description": "the books", "events": events });
    let made = shop.post(&path(shop, ""), &body).send().ok(201);
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    assert_eq!((&made["endpoint"]["url"], &made["endpoint"]["events"]), (&json!(receiver.url()), &json!(events)));
    assert_eq!((&made["endpoint"]["status"], &made["endpoint"]["merchantId"]), (&json!("active"), &json!(shop.id)));
    (text(&made["endpoint"]["id"]), text(&made["webhookSecret"]))
}

#[track_caller]
fn put(shop: &Shop, id: &str, body: &Value) -> Response {
    shop.api.put(&path(shop, &format!("/{id}")), body).bearer(&shop.key).send()
}

#[track_caller]
fn listed(shop: &Shop) -> Vec<Value> {
    let list = shop.get(&path(shop, "")).send().ok(200);
    list["endpoints"].as_array().expect("a list").clone()
}

/// Cancels a payment, which is an event.
fn event(shop: &Shop) -> String {
    let payment = shop.open_payment();
    shop.cancelled(&payment.id);
    payment.id
}

/// Returns the deliveries to an endpoint, newest first.
#[track_caller]
fn deliveries(shop: &Shop, endpoint: &str) -> Vec<Value> {
    let query = format!("/api/public/merchants/{}/webhook-deliveries?endpointId={endpoint}", shop.id);
    let list = shop.get(&query).send().ok(200);
    list["deliveries"].as_array().expect("a list").clone()
}

fn an_event_goes_to_each_endpoint_that_subscribes_to_its_type() {
    let (shop, default, books, other) = (shared().shop(), Receiver::start(), Receiver::start(), Receiver::start());
    shop.set_webhook(&default);
    let (id, secret) = created(&shop, &books, &["payment.status_changed", "refund.completed"]);
    let (unsubscribed, _) = created(&shop, &other, &["refund.completed"]);
    let payment = event(&shop);
    let (first, second) = (default.hook(0), books.hook(0));
    first.verify(&shop.secret);
    second.verify(&secret);
    assert!(!second.is_signed_by(&shop.secret), "each endpoint has its own secret");
    assert_eq!(first.header("webhook-id"), second.header("webhook-id"), "one event");
    assert_ne!(first.header("x-hivetill-delivery"), second.header("x-hivetill-delivery"));
    assert_eq!((first.json(), &second.json()["data"]["id"]), (second.json(), &json!(payment)));
    let own = until("the delivery to be written down", || {
        let own = deliveries(&shop, &id);
        (own.len() == 1 && own[0]["status"] == "delivered").then_some(own)
    });
    assert_eq!((&own[0]["endpointId"], &own[0]["id"]), (&json!(id), &json!(second.header("x-hivetill-delivery"))));
    assert!(deliveries(&shop, &unsubscribed).is_empty());
    // A test is sent to the endpoint that it names, whatever the endpoint subscribes to.
    let test = path(&shop, &format!("/{unsubscribed}/test"));
    let sent = shop.post(&test, &json!({ "type": "payment.exception" })).send().ok(200);
    assert_eq!((&sent["trigger"], &sent["endpointId"]), (&json!("test"), &json!(unsubscribed)));
    assert_eq!(other.hook(0).header("x-hivetill-event"), "payment.exception");
    assert_eq!((default.hooks().len(), books.hooks().len()), (1, 1));
    let again = format!(
        "/api/public/merchants/{}/webhook-deliveries/{}/redeliver",
        shop.id,
        own[0]["id"].as_str().expect("an id")
    );
    let again = shop.post(&again, &json!({})).send().ok(200);
    assert_eq!(again["endpointId"], json!(id));
    assert_eq!(books.hook(1).body, second.body);
}

fn an_endpoint_is_updated_disabled_and_deleted() {
    let (shop, books) = (shared().shop(), Receiver::start());
    let (id, _) = created(&shop, &books, &["refund.completed"]);
    let default = shop.id.replace("mer_", "we_");
    let ids = |list: &[Value]| list.iter().map(|one| one["id"].clone()).collect::<Vec<_>>();
    assert_eq!(ids(&listed(&shop)), [json!(default), json!(id)]);
    assert_eq!(listed(&shop)[0]["status"], "none", "it has no webhookUrl");
    let events = json!(["payment.status_changed", "payment.exception"]);
    let updated = put(&shop, &id, &json!({ "description": null, "events": events })).ok(200);
    assert_eq!((&updated["description"], &updated["events"]), (&json!(""), &events));
    assert_eq!(updated["url"], books.url(), "absent fields stay as they are");
    event(&shop);
    books.hook(0);
    let disabled = put(&shop, &id, &json!({ "enabled": false })).ok(200);
    assert_eq!(
        (&disabled["enabled"], &disabled["status"], &disabled["disabledReason"]),
        (&json!(false), &json!("disabled"), &json!("merchant"))
    );
    event(&shop);
    let enabled = put(&shop, &id, &json!({ "enabled": true })).ok(200);
    assert_eq!((&enabled["enabled"], &enabled["status"]), (&json!(true), &json!("active")));
    let payment = event(&shop);
    assert_eq!(books.hook(1).json()["data"]["id"], payment.as_str(), "what happened meanwhile is not sent");
    assert_eq!(shop.get(&path(&shop, &format!("/{id}"))).send().ok(200)["id"], json!(id));
    let remove = || shop.api.request("DELETE", &path(&shop, &format!("/{id}"))).bearer(&shop.key).send();
    assert_eq!(ids(remove().ok(200)["endpoints"].as_array().expect("a list")), [json!(default)]);
    remove().refused(404, "not_found");
    shop.get(&path(&shop, &format!("/{id}"))).send().refused(404, "not_found");
    put(&shop, &id, &json!({ "enabled": true })).refused(404, "not_found");
    event(&shop);
    assert_eq!(books.hooks().len(), 2);
}

fn an_endpoint_has_its_own_health_and_its_own_replay() {
    let (shop, default, books) = (shared().shop(), Receiver::start(), Receiver::start());
    shop.set_webhook(&default);
    let (id, _) = created(&shop, &books, &["payment.status_changed"]);
    books.reply(&[Reply::Status(410)]);
    let first = event(&shop);
    books.hook(0);
    let disabled = until("410 to disable the endpoint", || {
        let found = shop.get(&path(&shop, &format!("/{id}"))).send().ok(200);
        (found["status"] == "disabled").then_some(found)
    });
    assert_eq!(disabled["disabledReason"], "gone");
    assert_eq!(listed(&shop)[0]["status"], "active", "another endpoint is not affected");
    event(&shop);
    default.hook(1);
    let held = until("both deliveries to be held", || {
        let own = deliveries(&shop, &id);
        (own.len() == 2 && own.iter().all(|one| one["status"] == "held")).then_some(own)
    });
    let enable = path(&shop, &format!("/{id}/enable"));
    let enabled = shop.post(&enable, &json!({ "replaySince": held[1]["createdAt"] })).send().ok(200);
    assert_eq!((&enabled["status"], &enabled["replayed"]), (&json!("active"), &json!(2)));
    books.hook(2);
    let reported: Vec<Value> = books.hooks()[1..].iter().map(|hook| hook.json()["data"]["id"].clone()).collect();
    assert!(reported.contains(&json!(first)), "{reported:?}");
    assert_eq!(default.hooks().len(), 2, "the replay is for one endpoint");
}

fn the_secret_of_an_endpoint_is_rotated() {
    let (shop, default, books) = (shared().shop(), Receiver::start(), Receiver::start());
    shop.set_webhook(&default);
    let (id, old) = created(&shop, &books, &["payment.status_changed"]);
    let rotate = path(&shop, &format!("/{id}/secret"));
    shop.post(&rotate, &json!({ "graceHours": 169 })).send().wrong(&["graceHours"]);
    let made = shop.post(&rotate, &json!({ "graceHours": 1 })).send().ok(200);
    assert!(made["previousValidUntil"].is_string());
    let new = made["webhookSecret"].as_str().expect("a secret").to_owned();
    event(&shop);
    let hook = books.hook(0);
    hook.verify(&new);
    assert!(hook.is_signed_by_legacy_rule("x-hivetill-signature-previous", &old), "both sign during the grace period");
    default.hook(0).verify(&shop.secret);
    assert!(!default.hook(0).is_signed_by(&new));
}

fn invalid_endpoints_name_their_field() {
    let (shop, books) = (shared().shop(), Receiver::start());
    let create = |body: Value| shop.post(&path(&shop, ""), &body).send();
    let valid = json!({ "url": books.url(), "events": ["refund.completed"] });
    let with = |field: &str, value: Value| {
        let mut body = valid.clone();
        body[field] = value;
        body
    };
    create(json!({})).wrong(&["events", "url"]);
    for (field, value) in [
        ("url", json!("ftp://books.example")),
        ("url", json!("books")),
        ("url", json!(7)),
        ("description", json!("x".repeat(101))),
        ("events", json!([])),
        ("events", json!(["payment.created"])),
        ("events", json!("refund.completed")),
    ] {
        create(with(field, value)).wrong(&[field]);
    }
    create(with("event", json!([]))).refused(400, "unknown_field");
    let (id, _) = created(&shop, &books, &["refund.completed"]);
    for (field, value) in [("url", json!("x")), ("url", Value::Null), ("events", json!([])), ("enabled", json!("yes"))]
    {
        put(&shop, &id, &json!({ field: value })).wrong(&[field]);
    }
    let default = shop.id.replace("mer_", "we_");
    put(&shop, &default, &json!({ "enabled": false })).wrong(&["endpointId"]);
    for unknown in ["we_0", "we_00000000000000000000000001"] {
        put(&shop, unknown, &json!({})).refused(404, "not_found");
        shop.post(&path(&shop, &format!("/{unknown}/test")), &json!({})).send().refused(404, "not_found");
        shop.post(&path(&shop, &format!("/{unknown}/enable")), &json!({})).send().refused(404, "not_found");
    }
    let query = format!("/api/public/merchants/{}/webhook-deliveries?endpointId=7", shop.id);
    shop.get(&query).send().wrong(&["endpointId"]);
}

fn a_merchant_has_at_most_sixteen_additional_endpoints() {
    let (shop, books) = (shared().shop(), Receiver::start());
    for _ in 0..16 {
        created(&shop, &books, &["refund.completed"]);
    }
    let body = json!({ "url": books.url(), "events": ["refund.completed"] });
    shop.post(&path(&shop, ""), &body).send().refused(409, "too_many_webhook_endpoints");
    assert_eq!(listed(&shop).len(), 17);
}

fn endpoints_are_accessible_to_their_merchant_only() {
    let (shop, other, books) = (shared().shop(), shared().shop(), Receiver::start());
    let (id, _) = created(&shop, &books, &["refund.completed"]);
    let body = json!({ "url": books.url(), "events": ["refund.completed"] });
    for (method, rest) in [
        ("GET", String::new()),
        ("POST", String::new()),
        ("GET", format!("/{id}")),
        ("PUT", format!("/{id}")),
        ("DELETE", format!("/{id}")),
        ("POST", format!("/{id}/secret")),
        ("POST", format!("/{id}/enable")),
        ("POST", format!("/{id}/test")),
    ] {
        let request = || {
            let request = shop.api.request(method, &path(&shop, &rest));
            match (method, rest.as_str()) {
                ("POST", "") => request.json(&body),
                ("POST" | "PUT", _) => request.json(&json!({})),
                _ => request,
            }
        };
        request().bearer(&other.key).send().refused(403, "forbidden_merchant");
        request().send().refused(401, "invalid_api_key");
    }
    // An id of another merchant is unknown.
    let own = format!("/api/public/merchants/{}/webhook-endpoints/{id}", other.id);
    other.get(&own).send().refused(404, "not_found");
}
