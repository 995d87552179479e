//! The facilitator's own addresses.

use engine::x402::Reason;
use proto::{
    ApiError,
    v1::{self, x402_payment::Target},
};
use serde_json::{Value, json};

use super::{
    super::{Answer, Site},
    TRANSACTION_HF26, refused, v1_payload, v2_payload,
};
use crate::facade::fake_engine::{PAYMENT, TX};

const PATHS: [&str; 2] = ["/api/public/x402/verify", "/api/public/x402/settle"];

fn by_session(payload: &Value) -> Value {
    json!({ "sessionId": PAYMENT, "paymentPayload": payload })
}

fn v1_requirements() -> Value {
    json!({ "scheme": "exact", "network": "hive:mainnet", "maxAmountRequired": "10.500 HBD", "payTo": "blue.mugs",
        "resource": "https://shop.example/a", "validBefore": "2025-11-20T14:30:00Z", "extra": { "rate": 0.5 } })
}

fn v2_requirements() -> Value {
    json!({ "scheme": "exact", "network": "hive:mainnet", "amount": "10500", "asset": "HBD", "payTo": "blue.mugs",
        "maxTimeoutSeconds": 60, "extra": {} })
}

impl Site {
    async fn ask(&self, path: &str, body: &Value) -> Answer {
        self.raw_ask(path, &body.to_string()).await
    }

    async fn raw_ask(&self, path: &str, body: &str) -> Answer {
        self.send("POST", path, "content-type: application/json\r\n", body).await
    }
}

#[tokio::test]
async fn what_is_supported_is_said_as_official_clients_read_it() {
    let site = Site::open().await;
    let networks = site.agent("/api/public/x402/supported-networks", "").await;
    assert_eq!((networks.status, networks.json()), (200, json!(["hive:mainnet"])));
    let supported = site.agent("/api/public/x402/supported", "").await.json();
    let kind =
        |version, network: &str| json!({"x402Version": version, "scheme": "exact", "network": network, "extra": {}});
    let kinds = [kind(2, "hive:mainnet"), kind(1, "hive:mainnet"), kind(2, "hive:beeab0de000000000000000000000000")];
    assert_eq!(supported, json!({"kinds": kinds, "extensions": ["payment-identifier"], "signers": {}}));
    assert_eq!(site.agent("/api/public/x402/health", "").await.json()["status"], "ok");
    for (health, reason) in [(v1::Health::Degraded, "node_unavailable"), (v1::Health::Unavailable, "store_unavailable")]
    {
        *site.fake.health.lock().unwrap() = health;
        let answer = site.agent("/api/public/x402/health", "").await;
        assert_eq!(answer.error(), (503, reason.to_owned(), Vec::new()));
        assert!(answer.header("retry-after").is_some());
    }
    assert_eq!(site.agent("/api/public/x402/nothing", "").await.error().0, 404);
    assert_eq!(site.agent("/api/public/x402/verify", "").await.error().0, 405);
}

#[tokio::test]
async fn a_payment_is_judged_for_a_session_and_for_requirements_of_both_versions() {
    let site = Site::open().await;
    let mut hf26 = v1_payload();
    hf26["payload"]["signedTransaction"] = serde_json::from_str(TRANSACTION_HF26).unwrap();
    let mut packed = Vec::new();
    for (payload, requirements) in [
        (v1_payload(), v1_requirements()),
        (hf26, v1_requirements()),
        (v2_payload(), v2_requirements()),
        (v1_payload(), v2_requirements()),
    ] {
        let by_requirements =
            json!({ "x402Version": 2, "paymentRequirements": requirements, "paymentPayload": payload });
        for body in [by_session(&payload), by_requirements] {
            let verified = site.ask(PATHS[0], &body).await;
            assert_eq!((verified.status, verified.json()), (200, json!({"isValid": true, "payer": "agent"})), "{body}");
            let settled = site.ask(PATHS[1], &body).await;
            assert_eq!(
                (settled.status, settled.json()),
                (
                    200,
                    json!({"success": true, "txId": TX, "transaction": TX, "network": "hive:mainnet",
                    "payer": "agent", "blockNum": 7, "amount": "10500"})
                )
            );
            assert_eq!(settled.header("access-control-allow-origin"), Some("*"));
            let shown = site.shown();
            assert_eq!(shown.len(), 2);
            assert_eq!(shown[0], shown[1], "verify and settle read alike");
            match &shown[0].target {
                Some(Target::SessionId(id)) => assert_eq!(id, PAYMENT),
                Some(Target::Requirements(asked)) => {
                    assert_eq!((asked.pay_to.as_str(), asked.amount.as_ref().unwrap().units), ("blue.mugs", 10_500));
                    // What the payload names is the payer's word.
                    let named = requirements.get("resource").is_some();
                    assert_eq!(asked.resource.as_str(), if named { "https://shop.example/a" } else { "" });
                }
                None => panic!("no target"),
            }
            packed.push(shown[0].signed_transaction.clone());
        }
    }
    packed.dedup();
    assert_eq!(packed.len(), 1, "both JSON forms are one transaction, written again from what was read");
}

#[tokio::test]
async fn every_word_of_the_vocabulary_is_a_verdict_with_status_200() {
    let site = Site::open().await;
    for reason in Reason::ALL {
        site.leads_to(refused(*reason, Some("agent"), None));
        let verified = site.ask(PATHS[0], &by_session(&v1_payload())).await;
        assert_eq!(
            (verified.status, verified.json()),
            (
                200,
                json!({"isValid": false, "payer": "agent", "invalidReason": reason.as_str(), "invalidMessage": "because"})
            )
        );
        let settled = site.ask(PATHS[1], &by_session(&v1_payload())).await;
        assert_eq!(
            (settled.status, settled.json()),
            (
                200,
                json!({"success": false, "txId": "", "transaction": "", "network": "hive:mainnet",
                "payer": "agent", "errorReason": reason.as_str(), "errorMessage": "because"})
            )
        );
    }
    site.leads_to(refused(Reason::SettlementPending, Some("agent"), Some(TX)));
    let pending = site.ask(PATHS[1], &by_session(&v1_payload())).await;
    assert_eq!((&pending.json()["transaction"], pending.header("retry-after")), (&json!(TX), Some("3")));
}

/// Checks what an answer without a verdict still says.
fn is_unjudged(answer: &Answer, path: &str) {
    let body = answer.json();
    if path.ends_with("verify") {
        assert_eq!(body["isValid"], false, "{body}");
        assert!(body["invalidReason"].as_str().is_some_and(|word| Reason::parse(word).is_some()), "{body}");
    } else {
        assert_eq!(
            (&body["success"], &body["transaction"], &body["network"]),
            (&json!(false), &json!(""), &json!("hive:mainnet")),
            "{body}"
        );
        assert!(body["errorReason"].as_str().is_some_and(|word| Reason::parse(word).is_some()), "{body}");
    }
}

#[tokio::test]
async fn a_body_that_asks_for_nothing_is_a_400_and_still_no_success() {
    let site = Site::open().await;
    let both =
        json!({ "sessionId": PAYMENT, "paymentRequirements": v1_requirements(), "paymentPayload": v1_payload() });
    let deep = format!("{{\"sessionId\":{}{}}}", "[".repeat(2_000), "]".repeat(2_000));
    let twice = format!("{{\"sessionId\":\"a\",\"sessionId\":\"{PAYMENT}\",\"paymentPayload\":{}}}", v1_payload());
    for path in PATHS {
        for (body, reason, field) in [
            ("", "malformed_json", "body"),
            ("{", "malformed_json", "body"),
            ("\u{feff}{}", "malformed_json", "body"),
            (&*deep, "malformed_json", "body"),
            (&*twice, "malformed_json", "body"),
            ("[]", "validation_failed", "body"),
            ("{}", "validation_failed", "sessionId"),
            (&*json!({ "paymentPayload": v1_payload() }).to_string(), "validation_failed", "sessionId"),
            (&*both.to_string(), "validation_failed", "sessionId"),
            (&*json!({ "sessionId": PAYMENT }).to_string(), "validation_failed", "paymentPayload"),
        ] {
            let answer = site.raw_ask(path, body).await;
            assert_eq!(answer.error(), (400, reason.to_owned(), vec![field.to_owned()]), "{body}");
            is_unjudged(&answer, path);
        }
        let large = json!({ "sessionId": PAYMENT, "x": "x".repeat(64 * 1024) });
        let answer = site.ask(path, &large).await;
        assert_eq!(answer.error().0, 413);
        is_unjudged(&answer, path);
        let answer = site.send("POST", path, "content-type: text/plain\r\n", "{}").await;
        assert_eq!(answer.error().0, 415);
        is_unjudged(&answer, path);
    }
    assert!(site.shown().is_empty());
}

#[tokio::test]
async fn what_is_wrong_inside_a_body_is_a_verdict() {
    let site = Site::open().await;
    let with = |pointer: &str, value: Value| {
        let mut body = by_session(&v2_payload());
        *body.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = value;
        body
    };
    let operation = json!([["escrow_transfer", {}]]);
    for (body, reason) in [
        (with("/sessionId", json!("pay_x")), Reason::SessionNotFound),
        (with("/sessionId", json!(7)), Reason::SessionNotFound),
        (with("/paymentPayload", json!({})), Reason::InvalidPayload),
        (with("/paymentPayload/x402Version", json!(3)), Reason::InvalidX402Version),
        (with("/paymentPayload/x402Version", json!("2")), Reason::InvalidPayload),
        (with("/paymentPayload/accepted/scheme", json!("upto")), Reason::UnsupportedScheme),
        (with("/paymentPayload/accepted/network", json!("eip155:1")), Reason::InvalidNetwork),
        (with("/paymentPayload/payload/nonce", json!("")), Reason::InvalidPayload),
        (with("/paymentPayload/payload/signedTransaction", json!("")), Reason::InvalidPayload),
        (with("/paymentPayload/payload/signedTransaction/operations", operation), Reason::Operations),
        (with("/paymentPayload/payload/signedTransaction/extensions", json!([1])), Reason::InvalidPayload),
        (
            with("/paymentPayload/payload/signedTransaction/operations/0/1/amount", json!("+1.000 HBD")),
            Reason::InvalidPayload,
        ),
        (json!({ "paymentRequirements": {}, "paymentPayload": v1_payload() }), Reason::InvalidPaymentRequirements),
    ] {
        let verified = site.ask(PATHS[0], &body).await;
        assert_eq!((verified.status, &verified.json()["invalidReason"]), (200, &json!(reason.as_str())), "{body}");
        let settled = site.ask(PATHS[1], &body).await;
        assert_eq!((settled.status, &settled.json()["errorReason"]), (200, &json!(reason.as_str())), "{body}");
    }
    assert!(site.shown().is_empty(), "the engine is not asked about what cannot be read");
}

#[tokio::test]
async fn attack_30_without_a_node_there_is_no_verdict() {
    let site = Site::open().await;
    *site.fake.refuse_x402.lock().unwrap() = Some(ApiError::new(proto::Reason::NodeUnavailable));
    for (path, word) in PATHS.into_iter().zip(["unexpected_verify_error", "unexpected_settle_error"]) {
        let answer = site.ask(path, &by_session(&v1_payload())).await;
        assert_eq!(answer.error(), (503, "node_unavailable".to_owned(), Vec::new()));
        assert!(answer.header("retry-after").is_some());
        is_unjudged(&answer, path);
        assert!(answer.body.contains(word), "{}", answer.body);
    }
}
