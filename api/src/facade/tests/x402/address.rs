//! A checkout address as programs see it.

use engine::x402::Reason;
use proto::{ApiError, v1::PaymentStatus};
use serde_json::{Value, json};

use super::{super::Site, decode, encode, refused, v1_payload, v2_payload};
use crate::facade::fake_engine::{PAYMENT, SLUG, TX};

fn slug() -> String {
    format!("/for/{SLUG}")
}

fn x_payment() -> String {
    format!("x-payment: {}\r\n", encode(&v1_payload()))
}

fn extra() -> Value {
    json!({ "sessionId": PAYMENT, "memo": format!("pos-{PAYMENT}") })
}

#[tokio::test]
async fn a_program_is_asked_for_payment_in_both_versions() {
    let site = Site::open().await;
    for headers in ["", "accept: */*\r\n", "accept: application/json\r\n"] {
        let answer = site.agent(&slug(), headers).await;
        assert_eq!(answer.error(), (402, "payment_required".to_owned(), Vec::new()), "{headers}");
        for (name, value) in [
            ("content-type", "application/json"),
            ("cache-control", "no-store"),
            ("access-control-allow-origin", "*"),
            ("vary", "Accept, X-Payment, Payment-Signature"),
        ] {
            assert_eq!(answer.header(name), Some(value), "{name}");
        }
        let exposed = answer.header("access-control-expose-headers").expect("there");
        assert!(exposed.starts_with("x-payment, x-payment-response, PAYMENT-REQUIRED, PAYMENT-RESPONSE"), "{exposed}");
        assert!(answer.header("etag").is_none() && answer.header("x-payment-response").is_none());
        let one = decode(answer.header("x-payment").expect("version 1"));
        assert_eq!(
            one,
            json!({"x402Version": 1, "error": "payment_required", "accepts": [{
                "x402Version": 1, "scheme": "exact", "network": "hive:mainnet", "maxAmountRequired": "10.500 HBD",
                "resource": slug(), "description": "Two mugs", "mimeType": "application/json", "payTo": "blue.mugs",
                "validBefore": "2025-11-20T14:30:00.000Z", "asset": "HBD", "maxTimeoutSeconds": 300, "extra": extra(),
            }]})
        );
        let body = answer.json();
        for member in ["x402Version", "error", "accepts"] {
            assert_eq!(body[member], one[member], "{member}");
        }
        let two = decode(answer.header("payment-required").expect("version 2"));
        assert_eq!((&two["x402Version"], &two["error"]), (&json!(2), &json!("payment_required")));
        assert_eq!(
            two["accepts"],
            json!([{"scheme": "exact", "network": "hive:mainnet", "amount": "10500", "asset": "HBD",
                "payTo": "blue.mugs", "maxTimeoutSeconds": 300, "extra": extra()}])
        );
        assert_eq!(two["resource"]["url"], format!("https://pay.example{}", slug()));
        let extension = &two["extensions"]["payment-identifier"];
        assert!(extension["info"]["required"] == false && extension["schema"].is_object(), "{two}");
    }
    let by_id = site.agent(&format!("/checkout/{PAYMENT}"), "").await;
    assert_eq!(by_id.status, 402);
    assert!(!format!("{} {}", by_id.body, decode(by_id.header("x-payment").unwrap())).contains(SLUG));
    assert!(!decode(by_id.header("payment-required").unwrap()).to_string().contains(SLUG));
    assert!(site.shown().is_empty());
}

#[tokio::test]
async fn the_offer_is_the_same_as_long_as_the_session_lives_and_its_time_runs_down() {
    let site = Site::open().await;
    let offer = async |left_ms: u64| {
        site.fake.set(|payment| {
            let expires_at = payment.expires_at.and_then(proto::time::to_millis).expect("a time");
            payment.read_at = Some(proto::time::from_millis(expires_at - left_ms));
        });
        decode(site.agent(&slug(), "").await.header("payment-required").unwrap())["accepts"][0].clone()
    };
    for (left_ms, seconds) in [(1_740_000, 300), (299_999, 299), (1_500, 1), (1, 1)] {
        let offer = offer(left_ms).await;
        assert_eq!((&offer["maxTimeoutSeconds"], &offer["extra"]), (&json!(seconds), &extra()), "{left_ms}");
    }
}

#[tokio::test]
async fn a_collected_fee_is_part_of_the_offer_and_all_headers_fit_a_proxy() {
    let site = Site::open().await;
    site.fake.set(|payment| {
        payment.fee_account = Some("hivetill.fees".to_owned());
        payment.description = "é".repeat(400);
    });
    let answer = site.agent(&slug(), "").await;
    let offer = decode(answer.header("x-payment").unwrap());
    assert_eq!(
        offer["accepts"][0]["extra"],
        json!({"sessionId": PAYMENT, "memo": format!("pos-{PAYMENT}"), "feeAccount": "hivetill.fees",
            "feeAmount": "0.157 HBD", "netAmount": "10.343 HBD", "feeMemo": format!("fee-{PAYMENT}")})
    );
    assert_eq!(offer["accepts"][0]["description"], "é".repeat(128), "cut to 256 bytes, at a character's edge");
    assert!(answer.head.len() < 4_096, "{} bytes of headers", answer.head.len());
}

#[tokio::test]
async fn browsers_get_the_page_unless_they_show_a_payment() {
    let site = Site::open().await;
    for (headers, status) in [
        ("accept: text/html\r\n", 200),
        ("accept: text/html,application/xhtml+xml;q=0.9,*/*;q=0.8\r\n", 200),
        ("accept: TEXT/HTML\r\n", 200),
        ("accept: text/htmlx\r\n", 402),
        ("accept: text/html\r\nx-payment: e30=\r\n", 402),
        ("accept: text/html\r\nPayment-Signature: e30=\r\n", 402),
    ] {
        let answer = site.agent(&slug(), headers).await;
        assert_eq!(answer.status, status, "{headers}");
        assert_eq!(answer.header("access-control-allow-origin").is_some(), status == 402, "{headers}");
    }
}

#[tokio::test]
async fn a_payment_in_either_header_is_settled_and_answered_with_both_receipts() {
    let site = Site::open().await;
    for (name, payload, version) in [
        ("x-payment", v1_payload(), 1),
        ("X-PAYMENT", v1_payload(), 1),
        ("PAYMENT-SIGNATURE", v2_payload(), 2),
        ("payment-signature", v1_payload(), 1),
        ("x-payment", v2_payload(), 2),
    ] {
        for path in [slug(), format!("/checkout/{PAYMENT}")] {
            let answer = site.agent(&path, &format!("{name}: {}\r\n", encode(&payload))).await;
            assert_eq!(answer.status, 200, "{answer:?}");
            let body =
                json!({"success": true, "txId": TX, "payer": "agent", "sessionId": PAYMENT, "status": "completed"});
            assert_eq!(answer.json(), body);
            assert_eq!(
                answer.receipt(),
                json!({"success": true, "transaction": TX, "network": "hive:mainnet", "payer": "agent", "txId": TX})
            );
            assert_eq!(answer.header("cache-control"), Some("no-store, private"));
            assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
            let [shown] = &site.shown()[..] else { panic!("asked once") };
            assert_eq!((shown.x402_version, shown.nonce.as_str()), (version, "n-1"));
            assert_eq!(shown.accepted.is_some(), version == 2);
            assert!(format!("{:?}", shown.target).contains(PAYMENT));
        }
    }
}

#[tokio::test]
async fn a_refused_payment_is_told_why_and_what_would_do() {
    let site = Site::open().await;
    for reason in Reason::ALL {
        if matches!(reason, Reason::SettlementPending | Reason::UnexpectedSettleError | Reason::UnexpectedVerifyError) {
            continue;
        }
        site.leads_to(refused(*reason, Some("agent"), None));
        let answer = site.agent(&slug(), &x_payment()).await;
        if *reason == Reason::DuplicateSettlement {
            assert_eq!(answer.error(), (409, reason.as_str().to_owned(), Vec::new()));
            continue;
        }
        assert_eq!(answer.error(), (402, reason.as_str().to_owned(), Vec::new()));
        assert!(answer.has_requirements());
        let body = answer.json();
        assert_eq!((&body["success"], &body["error"]), (&json!(false), &json!(reason.as_str())));
        assert_eq!((&body["errorReason"], &body["errorMessage"]), (&json!(reason.as_str()), &json!("because")));
        assert_eq!(
            answer.receipt(),
            json!({"success": false, "errorReason": reason.as_str(), "errorMessage": "because", "transaction": "",
                "network": "hive:mainnet", "payer": "agent"})
        );
    }
}

#[tokio::test]
async fn attack_27_what_is_no_payment_header_is_refused_before_anybody_is_asked() {
    let site = Site::open().await;
    let good = encode(&v1_payload());
    let twice = v1_payload().to_string().replacen("{", "{\"x402Version\":1,", 1);
    let base64 = |text: &str| base64::Engine::encode(&base64::prelude::BASE64_STANDARD, text);
    let deep = format!("{{\"x\":{}{}}}", "[".repeat(40), "]".repeat(40));
    let malformed = [
        String::new(),
        "!".to_owned(),
        "null".to_owned(),
        format!("{good}!"),
        format!("{good}, {good}"),
        format!("{good}{good}"),
        base64("not json"),
        base64("[]"),
        base64("7"),
        base64(&twice),
        base64(&deep),
        base64(&format!("{} {{}}", v1_payload())),
        base64("{\"x402Version\":1e999}"),
    ];
    for value in malformed {
        let answer = site.agent(&slug(), &format!("x-payment: {value}\r\n")).await;
        assert_eq!(answer.error(), (400, "invalid_payload".to_owned(), Vec::new()), "{value}");
        let body = answer.json();
        assert_eq!(
            (&body["error"], &body["success"], &body["transaction"]),
            (&json!("Malformed x-payment header"), &json!(false), &json!(""))
        );
        assert!(!answer.has_requirements());
    }
    for headers in [
        format!("x-payment: {good}\r\npayment-signature: {good}\r\n"),
        format!("x-payment: {good}\r\nx-payment: {good}\r\n"),
        format!("payment-signature: {good}\r\npayment-signature: {good}\r\n"),
    ] {
        let answer = site.agent(&slug(), &headers).await;
        assert_eq!(answer.error(), (400, "invalid_payload".to_owned(), Vec::new()));
    }
    let long = "x".repeat(16 * 1024 + 1);
    for headers in [format!("x-payment: {long}\r\n"), format!("x-payment: {good}\r\npayment-signature: {long}\r\n")] {
        let answer = site.agent(&slug(), &headers).await;
        assert_eq!(answer.error(), (431, "headers_too_large".to_owned(), Vec::new()));
    }
    let answer = site.agent(&slug(), &format!("x-payment: {}\r\n", "x".repeat(40 * 1024))).await;
    assert_eq!(answer.error().0, 431);
    assert!(site.shown().is_empty());
    // What is JSON and no payment is the payer's to mend: a verdict, with requirements.
    for (payload, reason) in [
        (json!({}), "invalid_payload"),
        (json!({"x402Version": 3}), "invalid_x402_version"),
        (json!({"x402Version": 1, "scheme": "upto", "network": "hive:mainnet"}), "unsupported_scheme"),
        (json!({"x402Version": 1, "scheme": "exact", "network": "hive:testnet"}), "invalid_network"),
    ] {
        let answer = site.agent(&slug(), &format!("x-payment: {}\r\n", encode(&payload))).await;
        assert_eq!(answer.error(), (402, reason.to_owned(), Vec::new()));
        assert_eq!((answer.has_requirements(), &answer.receipt()["errorReason"]), (true, &json!(reason)));
    }
    // Standard or URL-safe, padded or not: the same payment.
    for value in [good.replace('+', "-").replace('/', "_"), good.trim_end_matches('=').to_owned()] {
        assert_eq!(site.agent(&slug(), &format!("x-payment: {value}\r\n")).await.status, 200);
    }
}

#[tokio::test]
async fn what_a_payer_wrote_is_not_repeated_at_length() {
    let site = Site::open().await;
    let mut payload = v1_payload();
    payload["payload"]["signedTransaction"]["operations"][0][0] = json!("é".repeat(4_000));
    let answer = site.agent(&slug(), &format!("x-payment: {}\r\n", encode(&payload))).await;
    assert_eq!(answer.error().1, "invalid_exact_hive_payload_operations");
    assert!(answer.head.len() < 4_096, "{} bytes of headers", answer.head.len());
    let message = answer.receipt()["errorMessage"].as_str().expect("a sentence").to_owned();
    assert!(message.len() <= 200 && message.ends_with('…'), "{message}");
}

#[tokio::test]
async fn an_open_outcome_offers_nothing_that_could_be_signed_again() {
    let site = Site::open().await;
    site.leads_to(refused(Reason::SettlementPending, Some("agent"), Some(TX)));
    let answer = site.agent(&slug(), &x_payment()).await;
    assert_eq!(answer.error(), (402, "settlement_pending".to_owned(), Vec::new()));
    assert!(!answer.has_requirements());
    assert_eq!(answer.header("retry-after"), Some("3"));
    let body = answer.json();
    for (member, value) in [
        ("success", json!(false)),
        ("error", json!("settlement_pending")),
        ("txId", json!(TX)),
        ("sessionId", json!(PAYMENT)),
        ("status", json!("processing")),
    ] {
        assert_eq!(body[member], value, "{member}");
    }
    let receipt = answer.receipt();
    assert_eq!((&receipt["errorReason"], &receipt["transaction"]), (&json!("settlement_pending"), &json!(TX)));
}

#[tokio::test]
async fn while_a_payment_is_on_its_way_no_other_is_asked_for() {
    let site = Site::open().await;
    for status in [PaymentStatus::Pending, PaymentStatus::Processing] {
        site.fake.set(|payment| {
            payment.status = status.into();
            payment.claim_tx_id = Some(TX.to_owned());
            payment.expired = status == PaymentStatus::Pending;
        });
        let answer = site.agent(&slug(), "").await;
        assert_eq!(answer.error(), (409, "payment_in_flight".to_owned(), Vec::new()));
        let (body, word) = (answer.json(), if status == PaymentStatus::Pending { "pending" } else { "processing" });
        assert_eq!((body.get("txId"), &body["sessionId"]), (None, &json!(PAYMENT)));
        assert_eq!((&body["status"], answer.header("retry-after")), (&json!(word), Some("3")));
        assert!(!answer.has_requirements());
        // Who shows the payment that is on its way is told what became of it; who shows another one is refused.
        assert_eq!(site.agent(&slug(), &x_payment()).await.status, 200);
        site.leads_to(refused(Reason::DuplicateSettlement, Some("other"), None));
        let answer = site.agent(&slug(), &x_payment()).await;
        assert_eq!(answer.error(), (409, "duplicate_settlement".to_owned(), Vec::new()));
        assert!(!answer.has_requirements());
        assert_eq!(answer.receipt()["errorReason"], "duplicate_settlement");
        site.leads_to(crate::facade::fake_engine::settled());
    }
    site.fake.set(|payment| {
        payment.status = PaymentStatus::Pending.into();
        (payment.claim_tx_id, payment.expired, payment.detected) = (None, false, true);
    });
    let answer = site.agent(&slug(), "").await;
    assert_eq!(answer.error(), (409, "payment_detected".to_owned(), Vec::new()));
    assert!(!answer.has_requirements());
}

#[tokio::test]
async fn a_closed_session_answers_in_the_order_of_the_interface() {
    let site = Site::open().await;
    let malformed = "x-payment: !\r\n".to_owned();
    for headers in [String::new(), x_payment(), malformed] {
        let ask = async |path: String| {
            let answer = site.agent(&path, &headers).await;
            assert!(!answer.has_requirements(), "{answer:?}");
            let (status, reason, _) = answer.error();
            (status, reason)
        };
        site.fake.set(|payment| *payment = crate::facade::fake_engine::payment());
        assert_eq!(ask("/for/unknown".to_owned()).await, (404, "not_found".to_owned()), "{headers}");
        site.fake.set(|payment| payment.x402_enabled = false);
        assert_eq!(ask(slug()).await, (403, "x402_disabled".to_owned()), "{headers}");
        site.fake.set(|payment| payment.merchant_active = false);
        assert_eq!(ask(slug()).await, (403, "merchant_inactive".to_owned()), "{headers}");
        site.fake.set(|payment| payment.expired = true);
        assert_eq!(ask(slug()).await, (410, "session_expired".to_owned()), "{headers}");
        for (status, reason) in [
            (PaymentStatus::SystemCancelled, "session_expired"),
            (PaymentStatus::UserCancelled, "session_not_pending"),
            (PaymentStatus::Failed, "session_not_pending"),
        ] {
            site.fake.set(|payment| payment.status = status.into());
            assert_eq!(ask(slug()).await, (410, reason.to_owned()), "{headers}");
        }
        assert!(site.shown().is_empty(), "nobody pays a closed session");
        site.fake.set(|payment| payment.status = PaymentStatus::Completed.into());
        site.leads_to(refused(Reason::SessionNotPending, None, None));
        assert_eq!(ask(slug()).await, (409, "session_completed".to_owned()), "{headers}");
        site.shown();
    }
    site.leads_to(crate::facade::fake_engine::settled());
    let again = site.agent(&slug(), &x_payment()).await;
    assert_eq!((again.status, &again.json()["txId"]), (200, &json!(TX)), "the receipt for the same payment");
}

#[tokio::test]
async fn attack_30_a_fault_of_ours_is_never_the_payers() {
    let site = Site::open().await;
    for reason in [proto::Reason::NodeUnavailable, proto::Reason::EngineUnavailable, proto::Reason::Overloaded] {
        *site.fake.refuse_x402.lock().unwrap() = Some(ApiError::new(reason));
        let answer = site.agent(&slug(), &x_payment()).await;
        assert_eq!(answer.status, 503);
        assert!(answer.header("retry-after").is_some() && !answer.has_requirements());
        let body = answer.json();
        assert_eq!((&body["success"], &body["error"]), (&json!(false), &json!("unexpected_settle_error")));
        assert_eq!(answer.error().1, proto::status::row_of(reason).name);
        assert_eq!(answer.receipt()["errorReason"], "unexpected_settle_error");
    }
    *site.fake.refuse_x402.lock().unwrap() = None;
    for reason in [Reason::UnexpectedSettleError, Reason::UnexpectedVerifyError] {
        site.leads_to(refused(reason, None, None));
        let answer = site.agent(&slug(), &x_payment()).await;
        assert_eq!((answer.status, answer.has_requirements()), (500, false));
        assert!(answer.header("retry-after").is_some());
    }
    *site.fake.refuse.lock().unwrap() = Some(ApiError::new(proto::Reason::StoreUnavailable));
    let answer = site.agent(&slug(), &x_payment()).await;
    assert_eq!((answer.status, answer.receipt()["success"].clone()), (503, json!(false)));
    assert_eq!(site.agent(&slug(), "").await.error(), (503, "store_unavailable".to_owned(), Vec::new()));
}

#[tokio::test]
async fn attack_28_only_a_get_that_somebody_meant_pays() {
    let site = Site::open().await;
    let payment = x_payment();
    let head = site.send("HEAD", &slug(), &payment, "").await;
    assert_eq!((head.status, head.body.as_str()), (402, ""));
    for ahead in ["Sec-Purpose: prefetch\r\n", "sec-purpose: prefetch;prerender\r\n", "Purpose: prefetch\r\n"] {
        assert_eq!(site.agent(&slug(), &format!("{payment}{ahead}")).await.status, 402, "{ahead}");
    }
    for method in ["POST", "PUT", "DELETE", "PATCH"] {
        let answer = site.send(method, &slug(), &payment, "").await;
        assert_eq!((answer.status, answer.header("allow")), (405, Some("GET, OPTIONS")), "{method}");
    }
    for path in ["status", "events"] {
        site.agent(&format!("{}/{path}", slug()), &payment).await;
    }
    let cancel = site.send("POST", &format!("{}/cancel", slug()), &format!("{payment}accept: text/html\r\n"), "").await;
    assert_eq!(cancel.status, 200, "never led elsewhere with a payment in hand");
    assert!(site.shown().is_empty());
}

#[tokio::test]
async fn attack_17_of_demands_agents_in_pages_of_any_origin_may_pay() {
    let site = Site::open().await;
    let ask = "origin: https://agent.example\r\naccess-control-request-method: GET\r\n\
               access-control-request-headers: payment-signature\r\n";
    for path in [slug(), format!("/checkout/{PAYMENT}")] {
        let answer = site.send("OPTIONS", &path, ask, "").await;
        assert_eq!((answer.status, answer.header("access-control-allow-origin")), (204, Some("*")));
        let allowed = answer.header("access-control-allow-headers").unwrap();
        assert!(allowed.contains("PAYMENT-SIGNATURE") && allowed.contains("X-PAYMENT"), "{allowed}");
        assert!(answer.header("access-control-allow-methods").unwrap().contains("GET"));
    }
    let answer = site.send("OPTIONS", &format!("{}/cancel", slug()), ask, "").await;
    assert_eq!(answer.header("access-control-allow-origin"), None);
    for path in ["verify", "settle", "supported"] {
        let answer = site.send("OPTIONS", &format!("/api/public/x402/{path}"), ask, "").await;
        assert_eq!((answer.status, answer.header("access-control-allow-origin")), (204, Some("*")));
    }
}
