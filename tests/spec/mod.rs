//! The tables of the interface: every path, every status and every validation rule, one test for each table.

mod strict;
mod wire;

use serde_json::{Value, json};

use crate::harness::{Api, Opened, Process, Shop, order, shared};

crate::tests!(
    every_endpoint_exists,
    an_endpoint_accepts_its_own_methods_only,
    unknown_paths_are_not_found,
    a_key_is_accepted_in_both_headers,
    all_wrong_keys_get_the_same_response,
    an_amount_is_a_string_of_digits,
    every_field_of_a_creation_is_validated_by_name,
    both_creation_endpoints_reject_the_same,
    a_body_must_be_a_json_object,
    a_response_has_its_request_id,
    unknown_ids_are_not_found,
    health_endpoints_report_the_state,
);

/// Returns every test of this module.
pub(crate) fn all() -> Vec<libtest_mimic::Trial> {
    [tests(), strict::tests(), wire::tests()].into_iter().flatten().collect()
}

/// The operations that the interface's specification fixes. Others may change.
const FIXED: &[(&str, &[&str])] = &[
    ("/api/public/payments", &["GET", "POST"]),
    ("/api/public/payments/create", &["POST"]),
    ("/api/public/payments/list", &["GET"]),
    ("/api/public/payments/volume", &["GET"]),
    ("/api/public/payments/fee-rate", &["GET"]),
    ("/api/public/payments/{id}", &["GET"]),
    ("/api/public/payments/{id}/status", &["GET"]),
    ("/api/public/payments/{id}/cancel", &["POST"]),
    ("/api/public/merchants/register", &["POST"]),
    ("/api/public/merchants/me", &["GET"]),
    ("/api/public/merchants/{id}", &["GET", "POST", "PUT"]),
    ("/api/public/merchants/{id}/webhook-secret", &["POST"]),
    ("/api/public/billing/me", &["GET"]),
    ("/api/public/x402/health", &["GET"]),
    ("/api/public/x402/supported-networks", &["GET"]),
    ("/api/public/x402/verify", &["POST"]),
    ("/api/public/x402/settle", &["POST"]),
    ("/api/admin/billing/overview", &["GET"]),
    ("/api/admin/billing/merchant/{id}", &["GET"]),
    ("/api/admin/billing/periods", &["GET"]),
    ("/api/admin/billing/tiers", &["GET", "PUT"]),
    ("/api/admin/billing/generate-invoices", &["POST"]),
    ("/api/admin/merchants/list", &["GET"]),
    ("/api/admin/merchants/change-status", &["POST"]),
    ("/for/{slug}", &["GET"]),
    ("/for/{slug}/status", &["GET"]),
    ("/for/{slug}/cancel", &["POST"]),
    ("/checkout/{id}", &["GET"]),
    ("/checkout/{id}/status", &["GET"]),
    ("/checkout/{id}/cancel", &["POST"]),
    ("/api/health", &["GET"]),
];

/// Returns every path of the description with its methods.
fn described(shop: &Shop) -> Vec<(String, Vec<String>)> {
    let document = shop.api.get("/openapi.json").send().ok(200);
    let paths = document["paths"].as_object().expect("paths");
    let methods = |item: &Value| item.as_object().expect("methods").keys().map(|key| key.to_uppercase()).collect();
    paths.iter().map(|(path, item)| (path.clone(), methods(item))).collect()
}

/// Fills the placeholders of a path with ids that exist or could exist.
fn filled(path: &str, payment: &Opened, merchant: &str) -> String {
    let id = match path {
        path if path.contains("/merchants/") || path.contains("/merchant/") => merchant,
        path if path.contains("/unmatched/") => "1-0-0",
        _ => &payment.id,
    };
    path.replace("{id}", id)
        .replace("{slug}", &payment.slug)
        .replace("{event}", "evt_00000000000000000000000000")
        .replace("{delivery}", "whd_00000000000000000000000000")
        .replace("{endpoint}", "we_00000000000000000000000000")
        .replace("{key}", "key_00000000000000000000000000")
}

fn every_endpoint_exists() {
    let shop = shared().shop();
    let payment = shop.open_payment();
    let described = described(&shop);
    for (path, methods) in FIXED {
        let taken = described.iter().find(|(known, _)| known == path).map(|(_, taken)| taken);
        let is_there = |method: &&str| taken.is_some_and(|taken| taken.iter().any(|known| known == method));
        assert!(methods.iter().all(is_there), "{path}: {taken:?}");
    }
    for (path, methods) in described {
        let path = filled(&path, &payment, &shop.id);
        // A stream has no end.
        let is_stream = path.ends_with("/stream") || (path.ends_with("/events") && !path.starts_with("/api/"));
        for method in methods.iter().filter(|_| !is_stream) {
            let response = shop.api.request(method, &path).send();
            let is_unknown = response.status == 404 && response.json()["reason"] == "unknown_route";
            assert!(!is_unknown && response.status != 405, "{method} {path}: {}", response.status);
            assert!(response.status < 500 || response.status == 501, "{method} {path}: {}", response.text());
        }
    }
}

fn an_endpoint_accepts_its_own_methods_only() {
    let shop = shared().shop();
    let payment = shop.open_payment();
    for (path, methods) in described(&shop) {
        let path = filled(&path, &payment, &shop.id);
        for method in ["GET", "POST", "PUT", "DELETE", "PATCH"] {
            if !methods.iter().any(|taken| taken == method) {
                let response = shop.api.request(method, &path).bearer(&shop.key).send();
                response.refused(405, "method_not_allowed");
                let allow = response.header("allow").unwrap_or_default().to_owned();
                assert!(methods.iter().all(|method| allow.contains(&**method)), "{path}: {allow}");
            }
        }
        let options = shop.api.request("OPTIONS", &path).send();
        assert_eq!(options.status, 204, "{path}");
    }
    let head = shop.api.request("HEAD", "/api/health").send();
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert_eq!(shop.payment(&payment.id)["status"], "pending");
}

fn unknown_paths_are_not_found() {
    let shop = shared().shop();
    for path in [
        "/",
        "/api",
        "/api/",
        "/api/public",
        "/api/public/",
        "/api/public/payments/",
        "/api/public//payments",
        "/API/public/payments",
        "/api/public/payments/pay_1/status/x",
        "/api/public/merchants",
        "/api/public/merchants/me/x",
        "/api/admin",
        "/api/v1/public/payments",
        "/for",
        "/checkout",
        "/assets/../Cargo.toml",
        "/.env",
        "/a/b/c/d/e/f/g/h/i",
        "/%00",
        "/%ff%fe",
    ] {
        for request in [shop.api.get(path), shop.get(path), shop.post(path, &json!({}))] {
            let response = request.send();
            assert_eq!(response.status, 404, "{path}: {}", response.text());
            let reason = response.json()["reason"].as_str().unwrap_or_default().to_owned();
            response.refused(404, &reason);
        }
    }
}

fn a_key_is_accepted_in_both_headers() {
    let (shop, other) = (shared().shop(), shared().shop());
    let me = |request: crate::harness::Response| request.ok(200)["id"].clone();
    let get = || shop.api.get("/api/public/merchants/me");
    assert_eq!(me(get().bearer(&shop.key).send()), shop.id.as_str());
    assert_eq!(me(get().x_api_key(&shop.key).send()), shop.id.as_str());
    assert_eq!(me(get().header("authorization", &format!("bearer {}", shop.key)).send()), shop.id.as_str());
    assert_eq!(me(get().bearer(&shop.key).x_api_key(&shop.key).send()), shop.id.as_str());
    for different in [other.key.as_str(), "sk_live_none", "x"] {
        get().bearer(&shop.key).x_api_key(different).send().refused(401, "conflicting_credentials");
        get().bearer(different).x_api_key(&shop.key).send().refused(401, "conflicting_credentials");
        get().x_api_key(&shop.key).x_api_key(different).send().refused(401, "conflicting_credentials");
    }
    for path in ["/api/public/payments", "/api/public/payments/create"] {
        for request in
            [shop.api.post(path, &order()).bearer(&shop.key), shop.api.post(path, &order()).x_api_key(&shop.key)]
        {
            request.send().ok(201);
        }
    }
}

fn all_wrong_keys_get_the_same_response() {
    let shop = shared().shop();
    let flipped = {
        let mut key = shop.key.clone();
        let last = key.pop().unwrap();
        key.push(if last == '0' { '1' } else { '0' });
        key
    };
    let revoked = {
        let other = shared().shop();
        let reissue = format!("/api/admin/merchants/{}/api-key", other.id);
        shared().api.post(&reissue, &json!({})).bearer(shared().admin_key()).send().ok(200);
        other.key
    };
    let (half, twice) = (&shop.key[..30], format!("{0}{0}", shop.key));
    let zeros = format!("sk_live_{}", "0".repeat(48));
    let mut bodies: Vec<Value> = Vec::new();
    for key in ["sk_live_", &flipped, half, &twice, &zeros, &revoked] {
        for request in
            [shop.api.get("/api/public/payments").bearer(key), shop.api.get("/api/public/payments").x_api_key(key)]
        {
            let response = request.send();
            let mut body = response.refused(401, "invalid_api_key");
            assert_eq!(response.header("www-authenticate"), Some("Bearer"));
            body["requestId"] = Value::Null;
            bodies.push(body);
        }
    }
    assert!(bodies.windows(2).all(|pair| pair[0] == pair[1]), "{bodies:#?}");
    let bare = || shop.api.get("/api/public/payments");
    for (request, reported) in [
        (bare(), "no API key was sent"),
        (bare().header("authorization", &shop.key), "needs `Bearer` and a space"),
        (bare().header("authorization", "Basic eDp5"), "other schemes are not supported"),
        (bare().bearer(&shop.secret), "webhook secret"),
        (bare().x_api_key(&shop.id), "API keys start with `sk_live_`"),
        (bare().bearer(&shop.key.to_uppercase()), "API keys start with `sk_live_`"),
    ] {
        let body = request.send().refused(401, "invalid_api_key");
        assert!(body["statusMessage"].as_str().is_some_and(|text| text.contains(reported)), "{reported}: {body}");
    }
    let bytes = b"GET /api/public/payments HTTP/1.1\r\nhost: x\r\nx-api-key: \xff\xe9\r\nconnection: close\r\n\r\n";
    crate::harness::raw(&shop.api, bytes).expect("a response").refused(401, "invalid_api_key");
    for bad in ["{", "[]", r#"{"amount":1,"unknown":2}"#] {
        let request =
            || shop.api.request("POST", "/api/public/payments").header("content-type", "application/json").body(bad);
        request().send().refused(401, "invalid_api_key");
        request().bearer(&flipped).send().refused(401, "invalid_api_key");
        request().bearer(&revoked).send().refused(401, "invalid_api_key");
    }
    for (method, path) in [
        ("POST", "/api/public/payments"),
        ("POST", "/api/public/payments/create"),
        ("GET", "/api/public/payments/pay_00000000000000000000000000"),
        ("GET", "/api/public/payments/x/status"),
        ("POST", "/api/public/payments/x/cancel"),
        ("GET", "/api/public/merchants/me"),
        ("POST", "/api/public/merchants/x"),
        ("PUT", "/api/public/merchants/x"),
        ("POST", "/api/public/merchants/x/webhook-secret"),
    ] {
        let request = || shop.api.request(method, path).json(&order());
        request().send().refused(401, "invalid_api_key");
        request().bearer(&flipped).send().refused(401, "invalid_api_key");
    }
}

/// Invalid values of `amount`, as JSON.
const NO_AMOUNTS: [&str; 29] = [
    "\"\"",
    "\"0\"",
    "\"00\"",
    "\"01\"",
    "\"-1\"",
    "\"+1\"",
    "\"1.5\"",
    "\"1,5\"",
    "\"1e3\"",
    "\"0x10\"",
    "\" 1\"",
    "\"1 \"",
    "\"1_000\"",
    "\"1.000 HBD\"",
    "\"١\"",
    "\"one\"",
    "\"NaN\"",
    "\"1000000001\"",
    "\"18446744073709551616\"",
    "\"99999999999999999999999999\"",
    "1",
    "1.5",
    "-1",
    "0",
    "1e3",
    "null",
    "true",
    "[\"1\"]",
    "{\"value\":\"1\"}",
];

fn an_amount_is_a_string_of_digits() {
    let shop = shared().shop();
    for path in ["/api/public/payments", "/api/public/payments/create"] {
        for amount in NO_AMOUNTS {
            let body = format!(r#"{{"amount":{amount},"currency":"HBD","description":"x"}}"#);
            let request = shop.api.request("POST", path).bearer(&shop.key).header("content-type", "application/json");
            request.body(body).send().wrong(&["amount"]);
        }
        for amount in ["1", "999", "1000000000"] {
            let mut body = order();
            body["amount"] = json!(amount);
            shop.post(path, &body).send().ok(201);
        }
    }
    assert_eq!(shop.get("/api/public/payments").send().ok(200)["pagination"]["total"], 6);
}

/// Bodies with the fields that are invalid in them.
fn wrong_orders() -> Vec<(Value, Vec<&'static str>)> {
    let with = |changes: Value| {
        let mut body = order();
        body.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        body
    };
    let keys = |count: usize| (0..count).map(|n| (format!("k{n}"), json!("v"))).collect::<serde_json::Map<_, _>>();
    let long = |count: usize| "é".repeat(count);
    let long_url = format!("https://a.example/{}", "x".repeat(2_048));
    vec![
        (json!({}), vec!["amount", "currency", "description"]),
        (json!({ "amount": 1, "currency": 2, "description": 3 }), vec!["amount", "currency", "description"]),
        (with(json!({ "currency": "BTC" })), vec!["currency"]),
        (with(json!({ "currency": "hbd" })), vec!["currency"]),
        (with(json!({ "currency": "" })), vec!["currency"]),
        (with(json!({ "currency": null })), vec!["currency"]),
        (with(json!({ "currency": ["HBD"] })), vec!["currency"]),
        (with(json!({ "description": "" })), vec!["description"]),
        (with(json!({ "description": "  " })), vec!["description"]),
        (with(json!({ "description": null })), vec!["description"]),
        (with(json!({ "description": 1 })), vec!["description"]),
        (with(json!({ "description": long(256) })), vec!["description"]),
        (with(json!({ "description": "a\u{0}b" })), vec!["description"]),
        (with(json!({ "description": "a\nb" })), vec!["description"]),
        (with(json!({ "redirectUrl": "" })), vec!["redirectUrl"]),
        (with(json!({ "redirectUrl": "/thanks" })), vec!["redirectUrl"]),
        (with(json!({ "redirectUrl": "javascript:alert(1)" })), vec!["redirectUrl"]),
        (with(json!({ "redirectUrl": "data:text/html,x" })), vec!["redirectUrl"]),
        (with(json!({ "redirectUrl": 1 })), vec!["redirectUrl"]),
        (with(json!({ "redirectUrl": long_url })), vec!["redirectUrl"]),
        (with(json!({ "cancelUrl": "mailto:a@b.example" })), vec!["cancelUrl"]),
        (with(json!({ "cancelUrl": {} })), vec!["cancelUrl"]),
        (with(json!({ "metadata": "x" })), vec!["metadata"]),
        (with(json!({ "metadata": [] })), vec!["metadata"]),
        (with(json!({ "metadata": { "n": 1 } })), vec!["metadata.n"]),
        (with(json!({ "metadata": { "n": null, "b": true } })), vec!["metadata.b", "metadata.n"]),
        (with(json!({ "metadata": { "o": {} } })), vec!["metadata.o"]),
        (with(json!({ "metadata": { "l": ["a", 1] } })), vec!["metadata.l"]),
        (with(json!({ "metadata": { "v": long(501) } })), vec!["metadata.v"]),
        (with(json!({ "metadata": { "l": vec!["x"; 21] } })), vec!["metadata.l"]),
        (with(json!({ "metadata": keys(51) })), vec!["metadata"]),
        (with(json!({ "expiresInSeconds": 59 })), vec!["expiresInSeconds"]),
        (with(json!({ "amount": "0", "redirectUrl": "x" })), vec!["amount"]),
    ]
}

fn every_field_of_a_creation_is_validated_by_name() {
    let shop = shared().shop();
    for (body, fields) in wrong_orders() {
        let response = shop.post("/api/public/payments", &body).send();
        assert_eq!(response.status, 400, "{body}: {}", response.text());
        response.wrong(&fields);
    }
    let largest = json!({
        "amount": "1000000000", "currency": "HIVE", "description": "é".repeat(255),
        "metadata": { "é".repeat(40): "é".repeat(500), "l": vec!["x"; 20] },
    });
    shop.post("/api/public/payments", &largest).send().ok(201);
    assert_eq!(shop.get("/api/public/payments").send().ok(200)["pagination"]["total"], 1);
}

fn both_creation_endpoints_reject_the_same() {
    let shop = shared().shop();
    for (body, _) in wrong_orders() {
        let [mut first, mut second] = ["/api/public/payments", "/api/public/payments/create"]
            .map(|path| shop.api.post(path, &body).x_api_key(&shop.key).send().json());
        first["requestId"] = Value::Null;
        second["requestId"] = Value::Null;
        assert_eq!(first, second);
    }
}

fn a_body_must_be_a_json_object() {
    let shop = shared().shop();
    let send = |path: &str, body: &[u8]| {
        let request = shop.api.request("POST", path).bearer(&shop.key).header("content-type", "application/json");
        request.body(body).send()
    };
    let deep = "[".repeat(30_000);
    let deep_object = format!("{}1{}", "{\"a\":".repeat(5_000), "}".repeat(5_000));
    for path in ["/api/public/payments", "/api/public/payments/create", "/api/public/merchants/register"] {
        for body in [
            "",
            "{",
            "}",
            "{]",
            "nope",
            "{\"amount\":}",
            "{\"amount\":01}",
            "{'a':1}",
            "{\"a\":1,}",
            "\u{feff}{}",
            "{} {}",
            "{\"amount\":\"1\"",
            "NaN",
            &deep,
            &deep_object,
        ] {
            let body = send(path, body.as_bytes()).refused(400, "malformed_json");
            assert_eq!(body["details"][0]["field"], "body");
        }
        for body in ["[]", "null", "1", "\"text\"", "true"] {
            send(path, body.as_bytes()).wrong(&["body"]);
        }
        for bytes in [&b"{\"amount\":\"\xff\"}"[..], b"\xff\xfe{\x00}\x00", b"\x00", b"\x1f\x8b\x08\x00"] {
            send(path, bytes).refused(400, "malformed_json");
        }
        for content_type in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"] {
            let request = shop.api.request("POST", path).bearer(&shop.key).header("content-type", content_type);
            request.body(order().to_string()).send().refused(415, "unsupported_media_type");
        }
        for coding in ["gzip", "br", "identity, gzip"] {
            let request = shop.api.request("POST", path).bearer(&shop.key).header("content-type", "application/json");
            request
                .header("content-encoding", coding)
                .body(order().to_string())
                .send()
                .refused(415, "unsupported_media_type");
        }
    }
    let utf8 = shop.api.request("POST", "/api/public/payments").bearer(&shop.key);
    utf8.header("content-type", "application/json; charset=utf-8").body(order().to_string()).send().ok(201);
    let none = shop.api.request("POST", "/api/public/payments").bearer(&shop.key);
    none.body(order().to_string()).send().ok(201);
}

fn a_response_has_its_request_id() {
    let api: &Api = &shared().api;
    let named = api.get("/api/health").header("x-request-id", "order-4711.a:b_c").send();
    assert_eq!(named.header("x-request-id"), Some("order-4711.a:b_c"));
    let refused = api.get("/nowhere").header("x-request-id", "mine").send();
    assert_eq!(refused.refused(404, "unknown_route")["requestId"], "mine");
    let long = "x".repeat(65);
    for unfit in ["", "a b", "<script>", &long] {
        let response = api.get("/api/health").header("x-request-id", unfit).send();
        assert!(response.header("x-request-id").is_some_and(|id| id.starts_with("req_")), "{unfit}");
    }
    let first = api.get("/api/health").send();
    assert_ne!(first.header("x-request-id"), api.get("/api/health").send().header("x-request-id"));
    assert_eq!(first.header("access-control-allow-origin"), Some("*"));
    assert_eq!(first.header("x-content-type-options"), Some("nosniff"));
}

fn unknown_ids_are_not_found() {
    let shop = shared().shop();
    let long = "x".repeat(4_000);
    for id in ["pay_00000000000000000000000000", "pay_1", "x", "PAY_00000000000000000000000000", "%F0%9F%90%9D", &long]
    {
        shop.get(&format!("/api/public/payments/{id}")).send().refused(404, "not_found");
        shop.get(&format!("/api/public/payments/{id}/status")).send().refused(404, "not_found");
        shop.cancel(id).refused(404, "not_found");
        for path in [format!("/for/{id}"), format!("/checkout/{id}")] {
            shop.api.get(&path).send().refused(404, "not_found");
            shop.api.get(&format!("{path}/status")).send().refused(404, "not_found");
        }
        shop.api.request("POST", &format!("/for/{id}/cancel")).send().refused(404, "not_found");
    }
}

fn health_endpoints_report_the_state() {
    let api = &shared().api;
    let health = api.get("/api/health").send().ok(200);
    let commit = health["commit"].as_str().expect("a commit");
    assert_eq!(
        health,
        json!({ "status": "ok", "version": env!("CARGO_PKG_VERSION"), "commit": commit,
        "livemode": false, "network": "development" })
    );
    let printed = Process::start(&["--version"]).finish().stdout;
    assert_eq!(printed.trim(), format!("hivetill {} (commit {commit})", env!("CARGO_PKG_VERSION")));
    assert_eq!(api.get("/livez").send().ok(200), json!({ "status": "ok" }));
    let ready = api.get("/readyz").send().ok(200);
    assert_eq!((&ready["ledgerReachable"], &ready["damagedRows"]), (&json!(true), &json!(0)));
    assert!(ready["scannedBlock"].as_u64() > Some(0), "{ready}");
}
