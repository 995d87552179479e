//! Servers with a false 402 response, or one that changes: refused with a reason, and no transaction is signed twice.

use serde_json::{Value, json};

use super::{
    agent::Agent,
    server::{Server, accept, required},
};
use crate::harness::{Dev, shared};

crate::tests!(
    a_false_offer_is_refused_with_a_reason,
    a_redirect_is_not_followed,
    an_oversized_header_is_refused,
    a_changed_payee_never_gets_a_second_transaction,
    a_refused_payment_counts_until_its_transaction_expires,
);

const POLICY: &str = "[limits]\nday = \"2.000 HBD\"\n";

fn with(mut accept: Value, member: &str, value: Value) -> Value {
    accept[member] = value;
    accept
}

fn a_false_offer_is_refused_with_a_reason() {
    let dev = shared();
    let (agent, server) = (Agent::new(dev, POLICY), Server::start());
    let honest = || accept("shop.demo", 50, "HBD");
    let cases = [
        (accept("shop.demo", 2_001, "HBD"), "above_day_limit"),
        (accept("shop.demo", 50, "HIVE"), "currency_not_allowed"),
        (with(honest(), "scheme", json!("upto")), "no_hive_offer"),
        (with(honest(), "network", json!("eip155:8453")), "no_hive_offer"),
        (with(honest(), "amount", json!("-50")), "malformed_offer"),
        (with(honest(), "amount", json!("0.050")), "malformed_offer"),
        (with(honest(), "payTo", json!("Shop.Demo")), "malformed_offer"),
        (with(honest(), "payTo", json!(agent.payer.name)), "self_payment"),
        (with(honest(), "maxTimeoutSeconds", json!(0)), "offer_expired"),
        (with(honest(), "extra", json!({ "memo": "#secret" })), "malformed_offer"),
    ];
    for (accept, reason) in cases {
        server.offer(std::slice::from_ref(&accept));
        let refused = agent.pay(&server.url(), &[]);
        assert_eq!((refused.code, &refused.json["reason"]), (Some(10), &json!(reason)), "{accept}: {}", refused.json);
    }
    let first = json!({ "x402Version": 1, "accepts": [{
        "scheme": "exact", "network": "hive:mainnet", "maxAmountRequired": "0.051 HBD", "resource": "/report",
        "payTo": "shop.demo", "asset": "HBD", "maxTimeoutSeconds": 60
    }]});
    server.respond(402, &[("payment-required", required(&server.url(), &[honest()]))], &first.to_string());
    assert_eq!(agent.pay(&server.url(), &[]).json["reason"], "contradicting_offers");
    for header in ["not base64!", "e30="] {
        server.respond(402, &[("payment-required", header.to_owned())], "{}");
        let refused = agent.pay(&server.url(), &[]);
        assert_eq!(refused.code, Some(10), "{header}: {}", refused.json);
    }
    assert_eq!((server.payments(), agent.used()), (0, 0), "nothing was signed");
}

fn a_redirect_is_not_followed() {
    let dev = shared();
    let (agent, server, other) = (Agent::new(dev, POLICY), Server::start(), Server::start());
    other.offer(&[accept("shop.demo", 50, "HBD")]);
    for status in [301, 302, 307, 308] {
        server.respond(status, &[("location", other.url())], "");
        let refused = agent.pay(&server.url(), &[]);
        assert_eq!((refused.code, &refused.json["reason"]), (Some(10), &json!("redirect")), "{}", refused.json);
        assert!(refused.json["message"].as_str().expect("a text").contains(&other.url()), "{}", refused.json);
    }
    assert_eq!((server.payments(), other.payments(), agent.used()), (0, 0, 0));
}

fn an_oversized_header_is_refused() {
    let dev = shared();
    let (agent, server) = (Agent::new(dev, POLICY), Server::start());
    for bytes in [1_000_000, 10_000_000] {
        server.respond(402, &[("payment-required", "A".repeat(bytes))], "{}");
        let refused = agent.pay(&server.url(), &[]);
        assert!(matches!(refused.code, Some(10 | 13)), "{bytes}: {}", refused.json);
        assert!(refused.json["reason"].is_string(), "{}", refused.json);
    }
    assert_eq!(agent.used(), 0);
}

/// The first response offers one payee, and after a refusal the next offers another: the signed transaction does not
/// change.
fn a_changed_payee_never_gets_a_second_transaction() {
    let dev = shared();
    let (agent, server) = (Agent::new(dev, POLICY), Server::start());
    server.offer(&[accept("shop.demo", 1_500, "HBD")]);
    let first = agent.pay(&server.url(), &[]);
    assert_eq!((first.code, &first.json["status"]), (Some(11), &json!("unpaid")), "{}", first.json);
    assert_eq!(first.json["state"], "signed", "it may still happen: {}", first.json);
    let other = dev.ledger.account("other");
    server.offer(&[accept(&other.name, 1_500, "HBD")]);
    let second = agent.pay(&server.url(), &[]);
    assert_eq!(second.json["txId"], first.json["txId"], "the stored payment is repeated: {}", second.json);
    assert_eq!(second.json["payTo"], "shop.demo");
    assert_eq!((server.payments(), agent.used()), (2, 1_500));
}

fn a_refused_payment_counts_until_its_transaction_expires() {
    let dev = Dev::start();
    let (agent, server) = (Agent::new(&dev, POLICY), Server::start());
    server.offer(&[accept("shop.demo", 1_500, "HBD")]);
    let refused = agent.pay(&server.url(), &["--expires-in", "15"]);
    assert_eq!((refused.code, agent.used()), (Some(11), 1_500), "{}", refused.json);
    let released = crate::harness::until("the amount to be released", || {
        let changed = agent.wallet(&["reconcile"]).json;
        changed["changed"].as_array().filter(|changed| !changed.is_empty()).cloned()
    });
    assert_eq!((&released[0]["state"], &released[0]["reason"]), (&json!("released"), &json!("transaction_expired")));
    let again = agent.pay(&server.url(), &[]);
    assert_ne!(again.json["txId"], refused.json["txId"], "a new transaction: {}", again.json);
    assert_eq!((again.code, agent.used(), agent.charged()), (Some(11), 1_500, 0));
}
