//! The facade over a small engine and real sockets: every address, every refusal.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use proto::{ApiError, v1};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use super::{
    Facade,
    fake::{Fake, KEY, MERCHANT, PAYMENT, SLUG},
    server::{Limits, serve},
};

struct Site {
    address: SocketAddr,
    fake: Fake,
}

#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    /// Checks that this is the error body, whole, and returns its reason and the fields it names.
    fn error(&self) -> (u16, String, Vec<String>) {
        let body = self.json();
        assert_eq!(body["statusCode"], self.status, "{self:?}");
        assert!(!body["statusMessage"].as_str().expect("a message").is_empty());
        let expected = match self.status {
            400 | 422 => "VALIDATION_ERROR",
            401 => "AUTHENTICATION_ERROR",
            403 => "FORBIDDEN_ERROR",
            404 => "NOT_FOUND_ERROR",
            429 => "RATE_LIMIT_ERROR",
            500.. => "SERVER_ERROR",
            _ => "API_ERROR",
        };
        assert_eq!(body["code"], expected);
        assert_eq!(body["requestId"].as_str(), self.header("x-request-id").or(Some("")), "{self:?}");
        let details = body["details"].as_array().cloned().unwrap_or_default();
        let fields = details.iter().map(|detail| detail["field"].as_str().expect("a field").to_owned()).collect();
        (self.status, body["reason"].as_str().expect("a reason").to_owned(), fields)
    }
}

impl Site {
    async fn open() -> Self {
        Self::open_with(Limits::default()).await
    }

    async fn open_with(limits: Limits) -> Self {
        let fake = Fake::new();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let mut facade = Facade::new(fake.engine(), "https://pay.example/", 7);
        Arc::get_mut(&mut facade).expect("not shared yet").body_timeout = limits.head_timeout;
        tokio::spawn(serve(listener, facade, limits, std::future::pending()));
        Self { address, fake }
    }

    async fn raw(&self, request: &[u8]) -> Answer {
        let mut stream = TcpStream::connect(self.address).await.expect("listening");
        // A refused request may be answered before it is read to its end.
        let _ = stream.write_all(request).await;
        let mut bytes = Vec::new();
        let read = tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut bytes)).await;
        read.expect("an answer in time").ok();
        let text = String::from_utf8(bytes).expect("text");
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.get(9..12).and_then(|code| code.parse().ok()).unwrap_or(0);
        Answer { status, head: head.to_owned(), body: body.to_owned() }
    }

    async fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> Answer {
        let length = if body.is_empty() { String::new() } else { format!("content-length: {}\r\n", body.len()) };
        let request =
            format!("{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{length}{headers}\r\n{body}");
        self.raw(request.as_bytes()).await
    }

    async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &format!("x-api-key: {KEY}\r\n"), "").await
    }

    async fn post(&self, path: &str, body: &str) -> Answer {
        let headers = format!("authorization: Bearer {KEY}\r\ncontent-type: application/json\r\n");
        self.send("POST", path, &headers, body).await
    }

    async fn browse(&self, path: &str) -> Answer {
        self.send("GET", path, "accept: text/html,*/*\r\n", "").await
    }
}

const GOOD: &str = r#"{"amount":"10500","currency":"HBD","description":"Two mugs","redirectUrl":"https://shop.example/ok","metadata":{"orderId":"7","tags":["a","b"]}}"#;

#[tokio::test]
async fn creation_answers_in_the_shape_of_its_path() {
    let site = Site::open().await;
    let first = site.post("/api/public/payments", GOOD).await;
    assert_eq!(first.status, 201);
    assert_eq!(first.header("location"), Some(&*format!("https://pay.example/api/public/payments/{PAYMENT}")));
    let amount = json!({"value": "10500", "formatted": "10.500 HBD", "currency": "HBD", "usdCents": 1050});
    assert_eq!(
        first.json(),
        json!({
            "id": PAYMENT, "slug": SLUG, "status": "pending",
            "checkoutUrl": format!("https://pay.example/checkout/{PAYMENT}"),
            "amount": amount, "fee": "157", "net": "10343", "description": "Two mugs",
            "expiresAt": "2025-11-20T14:30:00.000Z", "createdAt": "2025-11-20T14:00:00.000Z",
            "amountFormatted": "10.500 HBD", "currency": "HBD", "precision": 3, "usdEquivalentCents": 1050,
        })
    );
    let second = site.post("/api/public/payments/create", GOOD).await;
    let slug_url = format!("https://pay.example/for/{SLUG}");
    assert_eq!(second.status, 201);
    assert_eq!(second.json(), json!({"id": PAYMENT, "slug": SLUG, "redirectUrl": slug_url, "checkoutUrl": slug_url}));
}

#[tokio::test]
async fn a_record_has_every_name_of_the_interface_and_its_aliases() {
    let site = Site::open().await;
    let created = site.post("/api/public/payments", GOOD).await;
    assert_eq!(created.status, 201);
    let record = site.get(&format!("/api/public/payments/{PAYMENT}")).await.json();
    assert_eq!(record["metadata"], json!({"orderId": "7", "tags": ["a", "b"]}));
    assert_eq!((&record["completedAt"], &record["cancelUrl"]), (&Value::Null, &Value::Null));
    assert_eq!(record["redirectionUrl"], record["redirectUrl"]);
    for (name, value) in [
        ("merchantId", json!(MERCHANT)),
        ("merchantName", json!("Blue Mugs")),
        ("merchantIconUrl", Value::Null),
        ("providerId", json!("hive")),
        ("internalId", Value::Null),
        ("payTo", json!("blue.mugs")),
        ("amountRemaining", json!("10500")),
        ("exceptions", json!([])),
        ("livemode", json!(false)),
        ("sequence", json!(1)),
        ("precision", json!(3)),
    ] {
        assert_eq!(record[name], value, "{name}");
    }
    let status = site.get(&format!("/api/public/payments/{PAYMENT}/status")).await.json();
    assert_eq!(status, json!({"id": PAYMENT, "status": "pending", "completedAt": null}));
    let list = site.get("/api/public/payments?page=2&limit=20").await.json();
    assert_eq!(list["pagination"], json!({"page": 2, "limit": 20, "total": 41, "totalPages": 3}));
    assert_eq!((&list["data"][0], &list["nextCursor"]), (&record, &json!("next")));
    let rate = site.send("GET", "/api/public/payments/fee-rate", "", "").await;
    assert_eq!(rate.json(), json!({"feePercent": 1.5}));
}

#[tokio::test]
async fn every_bad_field_of_a_creation_is_a_400_that_names_it() {
    let site = Site::open().await;
    let with = |field: &str, value: Value| {
        let mut body: Value = serde_json::from_str(GOOD).expect("JSON");
        body[field] = value;
        body.to_string()
    };
    let mut table = vec![
        (with("currency", json!("BTC")), "currency"),
        (with("currency", json!("hbd")), "currency"),
        (with("currency", json!(1)), "currency"),
        (with("description", json!(7)), "description"),
        (with("description", Value::Null), "description"),
        (with("redirectUrl", json!(["x"])), "redirectUrl"),
        (with("cancelUrl", json!(true)), "cancelUrl"),
        (with("metadata", json!("x")), "metadata"),
        (with("metadata", json!({"n": 5})), "metadata.n"),
        (with("metadata", json!({"n": ["x", null]})), "metadata.n"),
        (with("expiresInSeconds", json!(59)), "expiresInSeconds"),
        (with("expiresInSeconds", json!(86_401)), "expiresInSeconds"),
        (with("expiresInSeconds", json!("60")), "expiresInSeconds"),
        (with("expiresInSeconds", json!(60.5)), "expiresInSeconds"),
        ("[1]".to_owned(), "body"),
    ];
    for amount in [json!("01"), json!("1.5"), json!("-1"), json!("1e3"), json!("0"), json!(1), json!(""), Value::Null] {
        table.push((with("amount", amount), "amount"));
    }
    for path in ["/api/public/payments", "/api/public/payments/create"] {
        for (body, field) in &table {
            let (status, reason, fields) = site.post(path, body).await.error();
            assert_eq!(
                (status, &*reason, &fields[..]),
                (400, "validation_failed", &[(*field).to_owned()][..]),
                "{body}"
            );
        }
        let (_, reason, fields) = site.post(path, r#"{"amount":"#).await.error();
        assert_eq!((&*reason, &fields[..]), ("malformed_json", &["body".to_owned()][..]));
        let (_, _, fields) = site.post(path, "{}").await.error();
        assert_eq!(fields, ["currency", "amount", "description"]);
    }
}

#[tokio::test]
async fn both_headers_carry_the_key_and_every_bad_key_gets_the_same_answer() {
    let site = Site::open().await;
    let path = format!("/api/public/payments/{PAYMENT}/status");
    for headers in [
        format!("x-api-key: {KEY}\r\n"),
        format!("X-API-Key: {KEY}\r\n"),
        format!("authorization: Bearer {KEY}\r\n"),
        format!("authorization: Bearer {KEY}\r\nx-api-key: {KEY}\r\n"),
    ] {
        assert_eq!(site.send("GET", &path, &headers, "").await.status, 200, "{headers}");
    }
    let mut bodies = Vec::new();
    for headers in [
        "",
        "x-api-key: sk_live_unknown\r\n",
        "x-api-key: ?\r\n",
        "authorization: Bearer x\r\n",
        "authorization: Basic eA==\r\n",
    ] {
        let headers = format!("{headers}x-request-id: same\r\n");
        let answer = site.send("GET", &path, &headers, "").await;
        assert_eq!(answer.error(), (401, "invalid_api_key".to_owned(), Vec::new()));
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
        bodies.push(answer.body);
    }
    bodies.dedup();
    assert_eq!(bodies.len(), 1, "{bodies:?}");
    let two = format!("x-api-key: {KEY}\r\nauthorization: Bearer other\r\n");
    assert_eq!(site.send("GET", &path, &two, "").await.error().1, "conflicting_credentials");
}

#[tokio::test]
async fn what_is_no_address_or_no_method_says_so() {
    let site = Site::open().await;
    for path in [
        "/",
        "/api",
        "/api/",
        "/api/public",
        "/nothing",
        "/api/public/payments/x/y/z",
        "/a/b/c/d/e/f/g/h",
        "/assets/x.js",
    ] {
        assert_eq!(site.get(path).await.error(), (404, "unknown_route".to_owned(), Vec::new()), "{path}");
    }
    for (method, path, allow) in [
        ("DELETE", "/api/public/payments", "GET, POST, OPTIONS"),
        ("GET", "/api/public/payments/create", "POST, OPTIONS"),
        ("POST", "/api/public/payments/list", "GET, OPTIONS"),
        ("PATCH", "/api/public/merchants/mer_1", "GET, POST, PUT, OPTIONS"),
        ("POST", "/api/health", "GET, OPTIONS"),
    ] {
        let answer = site.send(method, path, "", "").await;
        assert_eq!(answer.error(), (405, "method_not_allowed".to_owned(), Vec::new()), "{method} {path}");
        assert_eq!(answer.header("allow"), Some(allow));
    }
    let options = site.send("OPTIONS", "/api/public/payments", "origin: https://shop.example\r\n", "").await;
    assert_eq!((options.status, options.header("allow")), (204, Some("GET, POST, OPTIONS")));
    assert_eq!(options.header("access-control-allow-origin"), Some("*"));
    let head = site.send("HEAD", "/api/health", "", "").await;
    assert_eq!((head.status, &*head.body), (200, ""));
    assert_eq!(head.header("content-length"), Some("15"));
    let (status, reason, _) = site.get("/api/public/x402/supported-networks").await.error();
    assert_eq!((status, &*reason), (501, "not_implemented"));
}

#[tokio::test]
async fn what_is_too_large_or_no_json_is_refused_with_the_error_body() {
    let site = Site::open().await;
    let big = format!(r#"{{"description":"{}"}}"#, "x".repeat(64 * 1024));
    assert_eq!(site.post("/api/public/payments", &big).await.error(), (413, "body_too_large".to_owned(), Vec::new()));
    let chunks: String = (0..70).map(|_| format!("400\r\n{}\r\n", "x".repeat(1_024))).collect();
    let chunked = format!(
        "POST /api/public/payments HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx-api-key: {KEY}\r\ntransfer-encoding: chunked\r\n\r\n{chunks}0\r\n\r\n"
    );
    assert_eq!(site.raw(chunked.as_bytes()).await.error().0, 413);

    let form = format!("x-api-key: {KEY}\r\ncontent-type: application/x-www-form-urlencoded\r\n");
    let answer = site.send("POST", "/api/public/payments", &form, "amount=1").await;
    assert_eq!(answer.error(), (415, "unsupported_media_type".to_owned(), Vec::new()));
    let untyped = site.send("POST", "/api/public/payments", &format!("x-api-key: {KEY}\r\n"), GOOD).await;
    assert_eq!(untyped.status, 201, "a body without a type is read as JSON");

    for bytes in [33 * 1024, 63 * 1024, 200 * 1024] {
        let header = format!("x-padding: {}\r\n", "x".repeat(bytes));
        let answer = site.send("GET", "/api/health", &header, "").await;
        assert_eq!((answer.status, &*answer.error().1), (431, "headers_too_large"), "{bytes}");
    }
    let many: String = (0..150).map(|n| format!("x-{n}: 1\r\n")).collect();
    assert_eq!(site.send("GET", "/api/health", &many, "").await.error().0, 431);
    let long = format!("/api/public/payments?query={}", "x".repeat(9_000));
    assert_eq!(site.get(&long).await.error(), (414, "uri_too_long".to_owned(), Vec::new()));
    for nonsense in ["\u{16}\u{3}\u{1}hello\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/1.1\r\nbad header\r\n\r\n"] {
        assert_eq!(site.raw(nonsense.as_bytes()).await.error().1, "bad_request", "{nonsense:?}");
    }
}

#[tokio::test]
async fn slow_heads_and_slow_bodies_are_not_waited_for() {
    let limits = Limits { head_timeout: Duration::from_millis(200), ..Limits::default() };
    let site = Site::open_with(limits).await;
    let answer = site.raw(b"GET /api/health HTTP/1.1\r\nhost: x\r\nx-slow: ").await;
    assert_eq!(answer.head, "", "the connection is closed without a word");
    let body = format!(
        "POST /api/public/payments HTTP/1.1\r\nhost: x\r\nx-api-key: {KEY}\r\ncontent-length: 50\r\n\r\n{{\"amount\""
    );
    let answer = site.raw(body.as_bytes()).await;
    assert_eq!(answer.error(), (408, "request_timeout".to_owned(), Vec::new()));
}

#[tokio::test]
async fn every_answer_names_its_request() {
    let site = Site::open().await;
    for path in ["/api/health", "/nothing", "/assets/checkout.css", "/for/x"] {
        assert!(site.get(path).await.header("x-request-id").is_some_and(|id| id.starts_with("req_")), "{path}");
    }
    let answer = site.send("GET", "/nothing", "x-request-id: order-7\r\n", "").await;
    assert_eq!(answer.header("x-request-id"), Some("order-7"));
    assert_eq!(answer.json()["requestId"], "order-7");
}

#[tokio::test]
async fn every_reason_of_the_engine_reaches_the_caller() {
    let site = Site::open().await;
    for row in &proto::status::TABLE[1..] {
        let error = ApiError::new(row.reason).retry_after(3);
        *site.fake.refuse.lock().expect("one test") = Some(error);
        let answer = site.post("/api/public/payments", GOOD).await;
        assert_eq!(answer.error(), (row.http, row.word.to_owned(), Vec::new()));
        assert_eq!(answer.header("retry-after"), Some("3"), "{}", row.word);
    }
    let fields = ApiError::field("redirectUrl", "must be https").and_field("metadata.x", "too long");
    *site.fake.refuse.lock().expect("one test") = Some(fields);
    assert_eq!(site.post("/api/public/payments", GOOD).await.error().2, ["redirectUrl", "metadata.x"]);
}

#[tokio::test]
async fn merchants_register_read_and_change_themselves() {
    let site = Site::open().await;
    for account in ["hiveAccount", "hiveAccountName"] {
        let body = json!({"name": "Blue Mugs", account: "blue.mugs", "iconUrl": "https://x.example/i.png"});
        let headers = "content-type: application/json\r\n";
        let answer = site.send("POST", "/api/public/merchants/register", headers, &body.to_string()).await;
        assert_eq!(answer.status, 201);
        let made = answer.json();
        assert_eq!((made["apiKey"].as_str(), made["webhookSecret"].as_str()), (Some(KEY), Some("whsec_x")));
        assert_eq!(made["merchant"]["hiveAccount"], "blue.mugs");
        assert_eq!(made["merchant"]["isActive"], true);
    }
    let (_, _, fields) = site.post("/api/public/merchants/register", r#"{"hiveAccount":5}"#).await.error();
    assert_eq!(fields, ["name", "hiveAccount"]);
    let (_, _, fields) = site.post("/api/public/merchants/register", r#"{"name":"x"}"#).await.error();
    assert_eq!(fields, ["hiveAccount"]);

    let me = site.get("/api/public/merchants/me").await.json();
    assert_eq!(me, site.get(&format!("/api/public/merchants/{MERCHANT}")).await.json());
    for (name, value) in [
        ("hiveAccountName", json!("blue.mugs")),
        ("active", json!(true)),
        ("privileges", json!([])),
        ("x402Enabled", json!(true)),
        ("apiKeyLast4", json!("good")),
    ] {
        assert_eq!(me[name], value, "{name}");
    }
    assert_eq!(site.get("/api/public/merchants/mer_foreign").await.error().1, "forbidden_merchant");

    for method in ["POST", "PUT"] {
        let headers = format!("x-api-key: {KEY}\r\ncontent-type: application/json\r\n");
        let path = format!("/api/public/merchants/{MERCHANT}");
        let body = r#"{"iconUrl":null,"webhookUrl":"https://x.example/h","x402Enabled":false,"unknown":1}"#;
        assert_eq!(site.send(method, &path, &headers, body).await.status, 200);
        let asked = site.fake.last_update.lock().expect("one test").take().expect("asked");
        assert_eq!(asked.icon_url, Some(v1::TextChange { value: None }), "null clears");
        assert_eq!(asked.webhook_url.and_then(|change| change.value).as_deref(), Some("https://x.example/h"));
        assert_eq!((asked.name, asked.hive_account, asked.x402_enabled), (None, None, Some(false)));
        let bad = r#"{"name":null,"hiveAccount":7,"iconUrl":1,"webhookUrl":[],"x402Enabled":"yes"}"#;
        let (_, _, fields) = site.send(method, &path, &headers, bad).await.error();
        assert_eq!(fields, ["name", "hiveAccount", "iconUrl", "webhookUrl", "x402Enabled"]);
    }
    let path = format!("/api/public/merchants/{MERCHANT}/webhook-secret");
    assert_eq!(site.post(&path, "").await.json(), json!({"webhookSecret": "whsec_new"}));
    let graced = site.post(&path, r#"{"graceHours":1}"#).await.json();
    assert_eq!(graced["previousValidUntil"], "2025-11-20T15:00:00.000Z");
    for bad in ["-1", "169", "\"1\"", "1.5"] {
        let (_, _, fields) = site.post(&path, &format!(r#"{{"graceHours":{bad}}}"#)).await.error();
        assert_eq!(fields, ["graceHours"], "{bad}");
    }
}

#[tokio::test]
async fn admins_list_switch_and_reissue_in_both_forms() {
    let site = Site::open().await;
    for path in ["/api/admin/merchants?limit=50", "/api/admin/merchants/list?active=true"] {
        let page = site.get(path).await.json();
        assert_eq!(page["data"][0]["id"], MERCHANT);
        assert_eq!(page["pagination"]["total"], 1);
    }
    let path = format!("/api/admin/merchants/{MERCHANT}/active");
    assert_eq!(site.post(&path, r#"{"isActive":false}"#).await.json()["isActive"], false);
    for bad in ["{}", r#"{"isActive":"no"}"#, r#"{"isActive":null}"#] {
        assert_eq!(site.post(&path, bad).await.error().2, ["isActive"], "{bad}");
    }
    let path = format!("/api/admin/merchants/change-status?merchantId={MERCHANT}");
    assert_eq!(site.post(&path, r#"{"role":"nonActive"}"#).await.json()["active"], false);
    assert_eq!(site.post(&path, r#"{"role":"user"}"#).await.json()["active"], true);
    for bad in ["{}", r#"{"role":"admin"}"#, r#"{"role":1}"#] {
        assert_eq!(site.post(&path, bad).await.error().2, ["role"], "{bad}");
    }
    let (_, _, fields) = site.post("/api/admin/merchants/change-status", r#"{"role":"user"}"#).await.error();
    assert_eq!(fields, ["merchantId"]);
    let reissued = site.post(&format!("/api/admin/merchants/{MERCHANT}/api-key"), "").await.json();
    assert_eq!(reissued["apiKey"], "sk_live_new");
}

#[tokio::test]
async fn health_tells_people_and_load_balancers_apart() {
    let site = Site::open().await;
    for (health, status, ready) in [
        (v1::Health::Ok, (200, json!("ok")), 200),
        (v1::Health::Degraded, (200, json!("degraded")), 503),
        (v1::Health::Unavailable, (503, Value::Null), 503),
    ] {
        *site.fake.health.lock().expect("one test") = health;
        let answer = site.get("/api/health").await;
        assert_eq!((answer.status, answer.json()["status"].clone()), status);
        assert_eq!(site.get("/readyz").await.status, ready);
        assert_eq!(site.get("/livez").await.status, 200);
    }
}

#[tokio::test]
async fn the_page_is_for_browsers_and_tells_nothing_on() {
    let site = Site::open().await;
    let slug = format!("/for/{SLUG}");
    for path in [slug.clone(), format!("/checkout/{PAYMENT}")] {
        let page = site.browse(&path).await;
        assert_eq!(page.status, 200, "{path}");
        for needed in
            ["Blue Mugs", "Two mugs", "10.500", "blue.mugs", PAYMENT, "hive://sign/op/", "hivesigner.com", "<noscript>"]
        {
            assert!(page.body.contains(needed), "{path}: {needed}");
        }
        for (name, value) in [
            ("content-type", "text/html; charset=utf-8"),
            ("cache-control", "no-store"),
            ("referrer-policy", "no-referrer"),
            ("x-robots-tag", "noindex, nofollow"),
            ("x-content-type-options", "nosniff"),
            ("vary", "Accept, X-Payment"),
        ] {
            assert_eq!(page.header(name), Some(value), "{name}");
        }
        let csp = page.header("content-security-policy").expect("a policy");
        assert!(csp.starts_with("default-src 'none'; script-src 'self'") && !csp.contains("unsafe"));
        assert!(
            !page.body.contains("style=\"") && !page.body.contains("onclick"),
            "a strict policy forbids inline code"
        );
    }
    let page = site.browse(&format!("/checkout/{PAYMENT}")).await.body;
    let token = page.split("name=\"token\" value=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a token");
    assert!(page.contains(&format!("%3Ft%3D{token}%26tx%3D")), "a wallet leads back to the whole page");
    assert!(!page.contains(SLUG), "the id must not lead to the slug");

    for headers in ["", "accept: */*\r\n", "accept: application/json\r\n", "accept: text/html\r\nx-payment: e30=\r\n"] {
        let (status, reason, _) = site.send("GET", &slug, headers, "").await.error();
        assert_eq!((status, &*reason), (501, "not_implemented"), "{headers}");
    }
    assert_eq!(site.send("GET", "/for/unknown", "", "").await.error().0, 404);
    let missing = site.browse("/for/unknown").await;
    assert_eq!((missing.status, missing.body.contains("No such payment")), (404, true));
    assert_eq!(site.browse("/checkout/pay_x").await.status, 404);
    for (file, kind) in [("checkout.js", "text/javascript"), ("checkout.css", "text/css")] {
        assert!(site.get(&format!("/assets/{file}")).await.header("content-type").is_some_and(|t| t.starts_with(kind)));
    }
}

#[tokio::test]
async fn a_strangers_id_shows_of_a_finished_session_state_and_amount_only() {
    let site = Site::open().await;
    let open = site.browse(&format!("/checkout/{PAYMENT}")).await.body;
    let token = open.split("name=\"token\" value=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a token");
    site.fake.set(|payment| payment.status = v1::PaymentStatus::Completed.into());
    let finished = site.browse(&format!("/checkout/{PAYMENT}")).await.body;
    assert!(finished.contains("Paid") && finished.contains("10.500"));
    site.fake.set(|payment| payment.amount_overpaid_units = 5);
    let live = site.send("GET", &format!("/checkout/{PAYMENT}/status"), "", "").await.body;
    let events = site.send("GET", &format!("/checkout/{PAYMENT}/events"), "", "").await.body;
    for hidden in ["Two mugs", "shop.example", "Blue Mugs", SLUG] {
        assert!(!finished.contains(hidden) && !live.contains(hidden) && !events.contains(hidden), "{hidden}");
    }
    assert!(site.send("GET", &format!("/for/{SLUG}/status"), "", "").await.body.contains("Blue Mugs"));
    // Who saw the page while it was open is led on to the shop.
    let known = site.browse(&format!("/checkout/{PAYMENT}?t={token}")).await.body;
    assert!(known.contains("https://shop.example/ok"));
    assert!(site.browse(&format!("/for/{SLUG}")).await.body.contains("https://shop.example/ok"));
}

#[tokio::test]
async fn the_live_status_is_polled_or_streamed() {
    let site = Site::open().await;
    for base in [format!("/for/{SLUG}"), format!("/checkout/{PAYMENT}")] {
        let live = site.send("GET", &format!("{base}/status"), "", "").await;
        let body = live.json();
        assert_eq!(
            (&body["status"], &body["phase"], &body["id"]),
            (&json!("pending"), &json!("waiting"), &json!(PAYMENT))
        );
        assert_eq!(live.header("cache-control"), Some("no-store"));
        let stream = site.send("GET", &format!("{base}/events"), "accept: text/event-stream\r\n", "").await;
        assert_eq!(stream.header("content-type"), Some("text/event-stream"));
        assert!(
            stream.body.contains("event:status") && stream.body.contains("id:1") && stream.body.contains("retry:3000")
        );
    }
    assert_eq!(site.send("GET", "/for/unknown/status", "", "").await.error().0, 404);
}

#[tokio::test]
async fn a_customer_cancels_by_the_link_and_by_id_only_with_the_pages_token() {
    let site = Site::open().await;
    let by_id = format!("/checkout/{PAYMENT}/cancel");
    let form = "content-type: application/x-www-form-urlencoded\r\n";
    for body in ["", "token=", "token=00000000000000000000000000000000"] {
        assert_eq!(site.send("POST", &by_id, form, body).await.error().1, "invalid_form_token", "{body}");
    }
    let page = site.browse(&format!("/checkout/{PAYMENT}")).await.body;
    let token = page.split("name=\"token\" value=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a token");
    let browser = format!("{form}accept: text/html\r\n");
    let answer = site.send("POST", &by_id, &browser, &format!("token={token}")).await;
    assert_eq!((answer.status, answer.header("location")), (303, Some(&*format!("/checkout/{PAYMENT}?t={token}"))));

    let by_slug = format!("/for/{SLUG}/cancel");
    let answer = site.send("POST", &by_slug, "accept: application/json\r\n", "").await;
    assert_eq!((answer.status, answer.json()["status"].clone()), (200, json!("user_cancelled")));
    let answer = site.send("POST", &by_slug, &browser, "").await;
    assert_eq!((answer.status, answer.header("location")), (303, Some(&*format!("/for/{SLUG}"))));

    site.fake.set(|payment| payment.status = v1::PaymentStatus::Completed.into());
    assert_eq!(site.send("POST", &by_slug, "", "").await.error(), (409, "payment_not_pending".to_owned(), Vec::new()));
    let page = site.send("POST", &by_slug, &browser, "").await;
    assert_eq!((page.status, page.body.contains("no longer pending")), (409, true));
}

#[tokio::test]
async fn a_stopping_server_ends_the_streams_that_have_no_end() {
    let fake = Fake::new();
    fake.stay_open();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound");
    let facade = Facade::new(fake.engine(), "https://pay.example", 7);
    let stop = Arc::new(tokio::sync::Notify::new());
    let stopped = Arc::clone(&stop);
    let server = tokio::spawn(serve(listener, facade, Limits::default(), async move { stopped.notified().await }));
    let mut stream = TcpStream::connect(address).await.expect("listening");
    let request = format!("GET /for/{SLUG}/events HTTP/1.1\r\nhost: x\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut seen = String::new();
    while !seen.contains("event:status") {
        let mut some = [0; 512];
        let read = stream.read(&mut some).await.expect("an event");
        seen.push_str(&String::from_utf8_lossy(&some[..read]));
    }
    stop.notify_one();
    tokio::time::timeout(Duration::from_secs(5), server).await.expect("the server ends").expect("without panic");
}

#[tokio::test]
async fn a_stopping_server_lets_running_requests_end() {
    let fake = Fake::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound");
    let facade = Facade::new(fake.engine(), "https://pay.example", 7);
    let stop = Arc::new(tokio::sync::Notify::new());
    let stopped = Arc::clone(&stop);
    let server = tokio::spawn(serve(listener, facade, Limits::default(), async move { stopped.notified().await }));
    let mut running = TcpStream::connect(address).await.expect("listening");
    let head = format!(
        "POST /api/public/payments HTTP/1.1\r\nhost: x\r\nx-api-key: {KEY}\r\ncontent-length: {}\r\nexpect: 100-continue\r\n\r\n",
        GOOD.len()
    );
    running.write_all(head.as_bytes()).await.expect("sent");
    // The interim answer shows that the request is being handled.
    let mut interim = [0; 25];
    running.read_exact(&mut interim).await.expect("an interim answer");
    assert!(interim.starts_with(b"HTTP/1.1 100"));
    stop.notify_one();
    running.write_all(GOOD.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    running.read_to_string(&mut answer).await.expect("an answer, then the end");
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    tokio::time::timeout(Duration::from_secs(5), server).await.expect("the server ends").expect("without panic");
    assert!(TcpStream::connect(address).await.is_err(), "nobody listens any more");
    assert_eq!(fake.payment.lock().expect("one test").amount_units, 10_500);
}
