//! Strict requests: unknown fields, unknown parameters and repeated fields are rejected.

use serde_json::{Value, json};

use crate::harness::{Shop, order, shared};

crate::tests!(
    an_unknown_field_is_rejected_and_creates_nothing,
    a_repeated_field_is_rejected,
    an_unknown_parameter_of_a_list_is_rejected,
    a_list_without_parameters_rejects_every_parameter,
    an_unexpected_body_is_rejected_and_changes_nothing,
    pages_and_single_records_ignore_unknown_parameters,
    x402_bodies_may_have_unknown_fields,
);

fn send(shop: &Shop, path: &str, body: &str) -> crate::harness::Response {
    let request = shop.api.request("POST", path).bearer(&shop.key);
    request.header("content-type", "application/json").body(body).send()
}

fn reported(body: &Value, field: &str) -> String {
    let details = body["details"].as_array().expect("details");
    let found = details.iter().find(|detail| detail["field"] == field);
    found.unwrap_or_else(|| panic!("{field} is not named: {body}"))["message"].as_str().expect("text").to_owned()
}

fn an_unknown_field_is_rejected_and_creates_nothing() {
    let shop = shared().shop();
    let own = format!("/api/public/merchants/{}", shop.id);
    for path in ["/api/public/payments", "/api/public/payments/create"] {
        let mut body = order();
        body["redirect_url"] = json!("https://shop.example/ok");
        body["orderId"] = json!("7");
        let refused = shop.post(path, &body).send().refused(400, "unknown_field");
        assert!(reported(&refused, "redirect_url").contains("did you mean redirectUrl?"), "{refused}");
        assert_eq!(reported(&refused, "orderId"), "is not a field of this request");
    }
    assert_eq!(shop.get("/api/public/payments").send().ok(200)["pagination"]["total"], 0);
    let account = &shop.account.name;
    for (path, body, field) in [
        (
            "/api/public/merchants/register".to_owned(),
            json!({ "name": "x", "hiveAccount": account, "icon": "" }),
            "icon",
        ),
        (own.clone(), json!({ "webhookURL": "https://shop.example/hook" }), "webhookURL"),
        (format!("{own}/webhook-secret"), json!({ "grace": 1 }), "grace"),
        (format!("{own}/api-keys"), json!({ "scopes": ["payments:read"], "scope": "x" }), "scope"),
        (format!("{own}/webhook-replay"), json!({ "since": "2026-11-20T14:00:00Z", "until": "" }), "until"),
        (format!("{own}/webhook-enable"), json!({ "replaySinc": null }), "replaySinc"),
        ("/api/public/unmatched/1-0-0/assign".to_owned(), json!({ "paymentId": "x", "note": "" }), "note"),
        ("/api/public/unmatched/1-0-0/ignore".to_owned(), json!({ "notes": "x" }), "notes"),
        ("/api/public/payments/x/resolve".to_owned(), json!({ "kind": "ignored", "tx": "" }), "tx"),
    ] {
        reported(&shop.post(&path, &body).send().refused(400, "unknown_field"), field);
    }
    let admin = |method: &str, path: &str, body: &Value, field: &str| {
        let builder = shop.api.request(method, path).bearer(shared().admin_key()).json(body);
        reported(&builder.send().refused(400, "unknown_field"), field);
    };
    let of = format!("/api/admin/merchants/{}", shop.id);
    admin("POST", &format!("{of}/active"), &json!({ "isActive": true, "active": true }), "active");
    admin(
        "POST",
        &format!("{of}/compliance/clear"),
        &json!({ "reason": "x", "limits": { "daily": 1 } }),
        "limits.daily",
    );
    let tier = json!({ "minVolumeCents": 0, "maxVolumeCents": null, "percentFee": 1, "percent": 2 });
    admin("PUT", "/api/admin/billing/tiers", &json!({ "tiers": [tier] }), "tiers[0].percent");
}

fn a_repeated_field_is_rejected() {
    let shop = shared().shop();
    for (body, field) in [
        (r#"{"amount":"1","amount":"1500","currency":"HBD","description":"x"}"#, "amount"),
        (r#"{"amount":"1","currency":"HBD","description":"x","metadata":{"a":"1","a":"2"}}"#, "metadata.a"),
    ] {
        let refused = send(&shop, "/api/public/payments", body).refused(400, "validation_failed");
        assert_eq!(reported(&refused, field), "is set more than once");
    }
    assert_eq!(shop.get("/api/public/payments").send().ok(200)["pagination"]["total"], 0);
}

fn an_unknown_parameter_of_a_list_is_rejected() {
    let shop = shared().shop();
    let own = format!("/api/public/merchants/{}", shop.id);
    for (path, name) in [
        ("/api/public/payments?unusal=true".to_owned(), "unusal"),
        ("/api/public/payments/list?state=completed&page=1".to_owned(), "state"),
        ("/api/public/payments/export?format=json&utm_source=x".to_owned(), "utm_source"),
        ("/api/public/payments/volume?day=7".to_owned(), "day"),
        ("/api/public/events?cursor=1".to_owned(), "cursor"),
        ("/api/public/events/stream?since=1".to_owned(), "since"),
        ("/api/public/unmatched?state=open".to_owned(), "state"),
        (format!("{own}/webhook-deliveries?eventid=x"), "eventid"),
        (format!("{own}/webhook-deliveries/export?limit=1"), "limit"),
    ] {
        reported(&shop.get(&path).send().refused(400, "unknown_field"), name);
    }
    let refused = shop.get("/api/public/payments?unusal=true").send().refused(400, "unknown_field");
    assert!(reported(&refused, "unusal").contains("did you mean unusual?"), "{refused}");
    for path in ["/api/admin/merchants?activ=true", "/api/admin/merchants/export?page=1", "/api/admin/audit?page=1"] {
        let request = shop.api.get(path).bearer(shared().admin_key());
        request.send().refused(400, "unknown_field");
    }
    shop.api.get("/api/public/payments?unusal=true").send().refused(401, "invalid_api_key");
}

fn a_list_without_parameters_rejects_every_parameter() {
    let dev = shared();
    let shop = dev.shop().prove();
    let admin = dev.admin_key();
    let own = format!("/api/public/merchants/{}/api-keys", shop.id);
    for (path, key) in [
        (own.as_str(), shop.key.as_str()),
        ("/api/public/unmatched/1-2-3/candidates", &shop.key),
        ("/api/admin/nodes", admin),
        ("/api/admin/billing/overview", admin),
    ] {
        let refused = dev.api.get(&format!("{path}?state=open")).bearer(key).send().refused(400, "unknown_field");
        assert_eq!(refused["details"][0]["field"], "state", "{path}: {refused}");
    }
}

fn an_unexpected_body_is_rejected_and_changes_nothing() {
    let dev = shared();
    let shop = dev.shop();
    let payment = shop.open_payment();
    let cancel = format!("/api/public/payments/{}/cancel", payment.id);
    let redeliver = format!("/api/public/merchants/{}/webhook-deliveries/whd_x/redeliver", shop.id);
    let reissue = format!("/api/admin/merchants/{}/api-key", shop.id);
    for (path, key) in [(&cancel, shop.key.as_str()), (&redeliver, &shop.key), (&reissue, dev.admin_key())] {
        let refused = dev.api.post(path, &json!({ "reason": "x" })).bearer(key).send().refused(400, "unknown_field");
        assert_eq!(refused["details"][0]["field"], "reason", "{path}: {refused}");
    }
    assert_eq!(shop.payment(&payment.id)["status"], "pending");
    shop.get("/api/public/merchants/me").send().ok(200);
    shop.post(&cancel, &json!({})).send().ok(200);
}

fn pages_and_single_records_ignore_unknown_parameters() {
    let shop = shared().shop();
    let payment = shop.open_payment();
    for (path, status) in [
        (format!("/for/{}?utm_source=mail", payment.slug), 200),
        (format!("/for/{}/status?utm_source=mail", payment.slug), 200),
        // Before any transfer is seen, the page redirects a browser to the URL with the slug.
        (format!("/checkout/{}?fbclid=x", payment.id), 303),
    ] {
        let page = shop.api.get(&path).header("accept", "text/html").send();
        assert_eq!(page.status, status, "{path}");
    }
    shop.get(&format!("/api/public/payments/{}?v=2", payment.id)).send().ok(200);
    for path in ["/livez?x=1", "/api/health?probe=1", "/readyz?x=1"] {
        shop.api.get(path).send().ok(200);
    }
}

fn x402_bodies_may_have_unknown_fields() {
    let shop = shared().shop();
    let payment = shop.open_payment();
    let body = json!({
        "sessionId": payment.id,
        "paymentPayload": { "x402Version": 1, "scheme": "exact", "network": "hive:mainnet", "payload": {}, "more": 1 },
        "more": 1,
    });
    let verdict = shop.api.post("/api/public/x402/verify", &body).send();
    assert_ne!(verdict.json()["reason"], "unknown_field", "{}", verdict.text());
}
