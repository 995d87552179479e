//! Payments, merchants, admins, health: the shapes of their answers and every wrong field.

use proto::{ApiError, v1};
use serde_json::{Value, json};

use super::{GOOD, Site};
use crate::facade::fake_engine::{KEY, MERCHANT, PAYMENT, SLUG};

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
            "id": PAYMENT, "slug": SLUG, "slugUrl": format!("https://pay.example/for/{SLUG}"), "status": "pending",
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
async fn an_unknown_currency_of_the_engine_is_an_error_of_the_server() {
    let site = Site::open().await;
    let path = format!("/api/public/payments/{PAYMENT}");
    let failed = (500, "internal".to_owned(), Vec::new());
    let check = async |what: &str| {
        for path in [path.clone(), "/api/public/payments".to_owned(), format!("/for/{SLUG}/status")] {
            assert_eq!(site.get(&path).await.error(), failed, "{what} {path}");
        }
        let page = site.browse(&format!("/for/{SLUG}?lang=en")).await;
        assert_eq!(page.status, 500, "{what}");
        for wrong in ["HBD", "HIVE"] {
            assert!(!page.body.contains(wrong), "{what} {page:?}");
        }
        let program = site.send("GET", &format!("/for/{SLUG}"), "accept: application/json\r\n", "").await;
        assert_eq!(program.error(), failed, "{what}");
        assert_eq!(program.header("payment-required"), None);
        let events = site.send("GET", &format!("/for/{SLUG}/events"), "", "").await;
        assert!(!events.body.contains("event:"), "{what} {events:?}");
    };
    for currency in [0, 7] {
        site.fake.set(|payment| payment.currency = currency);
        check(&format!("currency {currency}")).await;
        assert_eq!(site.get(&format!("{path}/transfers")).await.status, 200, "it names no currency");
    }
    for amount in [None, Some(v1::Money { units: 1, currency: 0 }), Some(v1::Money { units: 1, currency: 7 })] {
        site.fake.set(|payment| {
            payment.currency = v1::Currency::Hbd.into();
            payment.transfers = vec![v1::Transfer { amount, ..v1::Transfer::default() }];
        });
        for path in [path.clone(), "/api/public/payments".to_owned(), format!("{path}/transfers")] {
            assert_eq!(site.get(&path).await.error(), failed, "{amount:?} {path}");
        }
    }
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
        "x-api-key: sk_live_unknown\r\n",
        "authorization: Bearer sk_live_x\r\n",
        "",
        "x-api-key: ?\r\n",
        "authorization: Basic eA==\r\n",
    ] {
        let headers = format!("{headers}x-request-id: same\r\n");
        let answer = site.send("GET", &path, &headers, "").await;
        assert_eq!(answer.error(), (401, "invalid_api_key".to_owned(), Vec::new()));
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
        bodies.push(answer.body);
    }
    assert_eq!(bodies[0], bodies[1], "whether a key exists is not told");
    bodies.dedup();
    assert_eq!(bodies.len(), 4, "{bodies:?}");
    let two = format!("x-api-key: {KEY}\r\nauthorization: Bearer other\r\n");
    assert_eq!(site.send("GET", &path, &two, "").await.error().1, "conflicting_credentials");
}

#[tokio::test]
async fn every_reason_of_the_engine_reaches_the_caller() {
    let site = Site::open().await;
    for row in &proto::status::TABLE[1..] {
        let error = ApiError::new(row.reason).retry_after(3);
        *site.fake.refuse.lock().expect("one test") = Some(error);
        let answer = site.post("/api/public/payments", GOOD).await;
        assert_eq!(answer.error(), (row.http, row.name.to_owned(), Vec::new()));
        assert_eq!(answer.header("retry-after"), Some("3"), "{}", row.name);
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
        let body = r#"{"iconUrl":null,"webhookUrl":"https://x.example/h","x402Enabled":false}"#;
        assert_eq!(site.send(method, &path, &headers, body).await.status, 200);
        let asked = site.fake.last_update.lock().expect("one test").take().expect("asked");
        assert_eq!(asked.icon_url, Some(v1::TextChange::from(None)), "null clears");
        assert_eq!(asked.webhook_url, Some(v1::TextChange::from(Some("https://x.example/h".to_owned()))));
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
