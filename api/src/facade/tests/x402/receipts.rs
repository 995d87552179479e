//! Signed offers and receipts, and their key set.

use engine::x402::{OFFER_RECEIPT, key_set, offer_extension, receipt_extension};
use proto::v1::{self, settle_payment_response::Outcome};
use serde_json::json;

use super::{super::Site, decode, encode, v1_payload};
use crate::facade::fake_engine::{PAYMENT, SLUG, settled};

const JWS: &str = "eyJhbGciOiJFZERTQSJ9.e30.c2ln";

fn slug() -> String {
    format!("/for/{SLUG}")
}

/// Returns the outcome of a payment whose receipt is signed.
fn signed() -> Outcome {
    match settled() {
        Outcome::Settled(settled) => Outcome::Settled(v1::X402Settled { receipt: Some(JWS.to_owned()), ..settled }),
        refused @ Outcome::Refused(_) => refused,
    }
}

#[tokio::test]
async fn a_402_has_the_signed_offer_among_the_extensions_of_version_2() {
    let site = Site::open().await;
    for path in [slug(), format!("/checkout/{PAYMENT}")] {
        *site.fake.signed_offer.lock().expect("one test") = None;
        let plain = site.agent(&path, "").await;
        let mut wanted = decode(plain.header("payment-required").expect("version 2"));
        assert!(wanted["extensions"].get(OFFER_RECEIPT).is_none(), "{wanted}");
        *site.fake.signed_offer.lock().expect("one test") = Some(JWS.to_owned());
        let response = site.agent(&path, "").await;
        assert_eq!(response.status, 402);
        wanted["extensions"][OFFER_RECEIPT] = offer_extension(JWS);
        assert_eq!(decode(response.header("payment-required").expect("version 2")), wanted);
        assert_eq!(response.header("x-payment"), plain.header("x-payment"), "version 1 has no extensions");
    }
}

#[tokio::test]
async fn the_headers_of_a_paid_response_have_the_signed_receipt() {
    let site = Site::open().await;
    let payment = format!("x-payment: {}\r\n", encode(&v1_payload()));
    let plain = site.agent(&slug(), &payment).await;
    assert_eq!((plain.status, plain.receipt().get("extensions")), (200, None));
    site.leads_to(signed());
    let response = site.agent(&slug(), &payment).await;
    assert_eq!(response.status, 200);
    assert_eq!(response.receipt()["extensions"], json!({ OFFER_RECEIPT: receipt_extension(JWS) }));
    assert_eq!(response.body, plain.body, "the body is the documented one");
}

#[tokio::test]
async fn the_facilitator_returns_the_signed_receipt_of_a_session() {
    let site = Site::open().await;
    let body = json!({ "sessionId": PAYMENT, "paymentPayload": v1_payload() }).to_string();
    let plain = site.post("/api/public/x402/settle", &body).await;
    assert_eq!((plain.status, plain.json().get("extensions")), (200, None));
    site.leads_to(signed());
    let outcome = site.post("/api/public/x402/settle", &body).await.json();
    assert_eq!(outcome["success"], true);
    assert_eq!(outcome["extensions"], json!({ OFFER_RECEIPT: receipt_extension(JWS) }));
}

#[tokio::test]
async fn the_key_set_has_every_public_key_and_may_be_cached_for_a_minute() {
    let site = Site::open().await;
    let response = site.agent("/.well-known/jwks.json", "").await;
    assert_eq!((response.status, response.json()), (200, key_set([[1; 32], [2; 32]])));
    for (name, value) in [
        ("content-type", "application/json"),
        ("cache-control", "public, max-age=60"),
        ("access-control-allow-origin", "*"),
    ] {
        assert_eq!(response.header(name), Some(value), "{name}");
    }
}
