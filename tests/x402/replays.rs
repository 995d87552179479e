//! Replays of one payment: for other routes, to other servers, and by third parties who read it from the chain.

use engine::hive::Pack;
use serde_json::{Value, json};

use super::{
    PRICE, SETTLE, encode, json_of, nonce, paid_for_good, session, settle, transfers_with_memo, v1, v2, verify, visit,
};
use crate::harness::{Dev, shared};

crate::tests!(
    a_payment_with_an_identifier_succeeds_once_for_one_resource,
    a_payment_identifier_only_rejects,
    a_nonce_is_unique_per_payee,
    equivalent_requirements_share_one_success,
    public_data_does_not_get_a_receipt,
    a_wallet_payment_has_no_receipt,
);

fn accepted(to: &str) -> Value {
    json!({ "scheme": "exact", "network": "hive:mainnet", "amount": "0.050 HBD", "asset": "HBD", "payTo": to })
}

/// A payment of version 2, with an identifier and a resource chosen by its payer.
fn named(dev: &Dev, agent: &crate::harness::Payer, to: &str, id: &str, resource: &str) -> Value {
    let nonce = nonce();
    let signed = dev.ledger.signed(agent, &[(to, "0.050 HBD", &format!("x402:{nonce}"))]);
    let mut shown = v2(&json_of(&signed), &nonce, &accepted(to));
    shown["resource"] = json!({ "url": resource });
    shown["extensions"] = json!({ "payment-identifier": { "info": { "required": false, "id": id } } });
    shown
}

fn a_payment_with_an_identifier_succeeds_once_for_one_resource() {
    let dev = shared();
    let (shop, agent) = (dev.shop(), dev.ledger.account("agent"));
    let mut shown = named(dev, &agent, &shop.account.name, "chosen-by-the-payer", "/a");
    let mut inbound = 0;
    let mut serve = |resource: &Value, shown: &Value| {
        inbound += 1;
        let mut requirements = accepted(&shop.account.name);
        requirements["resource"] = resource.clone();
        let body = json!({ "x402Version": 2, "paymentRequirements": requirements, "paymentPayload": shown });
        let key = format!("{}-inbound-{inbound}", shop.id);
        let request = dev.api.post(SETTLE, &body).x_api_key(&shop.key).header("idempotency-key", &key);
        let first = request.send().ok(200);
        if first["success"] == true {
            // The seller lost the response and repeats the request for the same inbound request.
            let request = dev.api.post(SETTLE, &body).x_api_key(&shop.key).header("idempotency-key", &key);
            let again = request.send();
            assert_eq!(again.header("idempotent-replayed"), Some("true"));
            let again = again.ok(200);
            assert_eq!((&again["success"], &again["replayed"]), (&json!(true), &json!(true)));
            assert!(first["blockNum"].is_u64() && first.get("replayed").is_none(), "{first}");
            assert_eq!(again["blockNum"], first["blockNum"]);
        }
        first["success"] == true
    };
    assert!(serve(&Value::Null, &shown));
    for resource in ["/a", "/b", "/c"] {
        shown["resource"]["url"] = json!(resource);
        assert!(!serve(&Value::Null, &shown), "the payer moved its payment to {resource}");
        assert!(!serve(&json!(resource), &shown), "{resource}");
    }
}

fn a_payment_identifier_only_rejects() {
    let dev = shared();
    let (shop, agent) = (dev.shop(), dev.ledger.account("agent"));
    let to = shop.account.name.as_str();
    let target = json!({ "x402Version": 2, "paymentRequirements": accepted(to) });
    let (first, other) =
        (named(dev, &agent, to, "one-of-the-payers", "/a"), named(dev, &agent, to, "one-of-the-payers", "/a"));
    assert_eq!(settle(&dev.api, &target, &first)["success"], true);
    assert_eq!(settle(&dev.api, &target, &first)["errorReason"], "duplicate_settlement", "the name repeats nothing");
    let body = json!({ "paymentRequirements": accepted(to), "paymentPayload": other });
    let refused = dev.api.post(SETTLE, &body).send().ok(409);
    assert_eq!((&refused["reason"], &refused["transaction"]), (&json!("payment_identifier_reused"), &json!("")));
    // At a checkout URL, too.
    let payment = shop.open_payment();
    let signed = dev.ledger.signed(&agent, &[(to, PRICE, &payment.memo)]);
    let mut shown = v2(&json_of(&signed), &nonce(), &super::offer(&shop.api, &format!("/for/{}", payment.slug), 2));
    shown["extensions"] = first["extensions"].clone();
    let path = format!("/for/{}", payment.slug);
    visit(&shop.api, &path, Some(&shown)).closed(409, "payment_identifier_reused");
    // For another payee the same identifier belongs to another payment.
    let server = dev.ledger.account("server");
    let elsewhere = named(dev, &agent, &server.name, "one-of-the-payers", "/a");
    let target = json!({ "paymentRequirements": accepted(&server.name) });
    assert_eq!(settle(&dev.api, &target, &elsewhere)["success"], true);
}

fn a_nonce_is_unique_per_payee() {
    let dev = shared();
    let (shop, agent, server) = (dev.shop(), dev.ledger.account("agent"), dev.ledger.account("server"));
    let same = nonce();
    for (to, success) in [(&shop.account.name, true), (&server.name, true), (&server.name, false)] {
        let signed = dev.ledger.signed(&agent, &[(to, "0.050 HBD", &format!("x402:{same}"))]);
        let target = json!({ "paymentRequirements": accepted(to) });
        assert_eq!(settle(&dev.api, &target, &v1(&json_of(&signed), &same))["success"], success, "{to}");
    }
}

/// Both names of the network, both forms of the amount, and both versions.
fn equivalent_requirements_share_one_success() {
    let dev = shared();
    let (shop, agent) = (dev.shop(), dev.ledger.account("agent"));
    let nonce = nonce();
    let signed = json_of(&dev.ledger.signed(&agent, &[(&shop.account.name, "0.050 HBD", &format!("x402:{nonce}"))]));
    let mut forms = Vec::new();
    for network in ["hive:mainnet", "hive:beeab0de000000000000000000000000"] {
        for amount in ["50", "0.050 HBD"] {
            let mut requirements = accepted(&shop.account.name);
            (requirements["network"], requirements["amount"]) = (json!(network), json!(amount));
            let shown = v2(&signed, &nonce, &requirements);
            forms.push((json!({ "x402Version": 2, "paymentRequirements": requirements }), shown));
        }
    }
    let requirements = json!({
        "scheme": "exact", "network": "hive:mainnet", "maxAmountRequired": "0.050 HBD", "payTo": shop.account.name,
    });
    forms.push((json!({ "x402Version": 1, "paymentRequirements": requirements }), v1(&signed, &nonce)));
    for (target, shown) in &forms {
        assert_eq!(verify(&dev.api, target, shown)["isValid"], true, "{target}");
    }
    let outcomes: Vec<Value> = forms.iter().map(|(target, shown)| settle(&dev.api, target, shown)).collect();
    assert_eq!(outcomes[0]["success"], true, "{}", outcomes[0]);
    for (outcome, (target, _)) in outcomes.iter().zip(&forms).skip(1) {
        assert_eq!(outcome["errorReason"], "duplicate_settlement", "{target}: {outcome}");
    }
    assert_eq!(transfers_with_memo(&dev.ledger, &format!("x402:{nonce}")), 1);
}

fn public_data_does_not_get_a_receipt() {
    let dev = shared();
    let (shop, agent) = (dev.shop(), dev.ledger.account("agent"));
    let payment = shop.open_payment();
    let path = format!("/for/{}", payment.slug);
    let signed = dev.ledger.signed(&agent, &[(&shop.account.name, PRICE, &payment.memo)]);
    let tx_id = signed.id(Pack::Legacy).to_string();
    let (whole, secret) = (json_of(&signed), nonce());
    let shown = v1(&whole, &secret);
    assert_eq!(settle(&shop.api, &session(&payment.id), &shown)["success"], true);
    paid_for_good(&shop, &payment.id);
    let mut stripped = whole.clone();
    stripped["signatures"] = json!([]);
    for stolen in [v1(&stripped, &secret), v1(&stripped, "x"), v1(&whole, &nonce())] {
        let refused = settle(&shop.api, &session(&payment.id), &stolen);
        assert_eq!((&refused["errorReason"], &refused["transaction"]), (&json!("duplicate_settlement"), &json!("")));
        assert!(refused.get("payer").is_none(), "{refused}");
        let verdict = verify(&shop.api, &session(&payment.id), &stolen);
        assert_eq!((verdict.get("payer"), verdict.get("transaction")), (None, None), "{verdict}");
        for path in [&path, &format!("/checkout/{}", payment.id)] {
            let response = visit(&shop.api, path, Some(&stolen));
            let body = response.closed(409, "session_completed");
            assert!(body.get("txId").is_none() && response.receipt()["transaction"] == "", "{body}");
        }
    }
    // Its payer can always get it, in any letter case.
    for path in [&path, &format!("/checkout/{}", payment.id)] {
        let response = shop.api.get(path).header("PAYMENT-SIGNATURE", &encode(&shown)).send();
        let receipt = response.receipt();
        let body = response.ok(200);
        assert_eq!((&body["txId"], &body["replayed"]), (&json!(tx_id), &json!(true)));
        assert_eq!(receipt["replayed"], true);
    }
    assert_eq!(transfers_with_memo(&dev.ledger, &payment.memo), 1);
}

fn a_wallet_payment_has_no_receipt() {
    let dev = shared();
    let (shop, agent) = (dev.shop(), dev.ledger.account("agent"));
    let payment = shop.open_payment();
    let path = format!("/for/{}", payment.slug);
    let signed = dev.ledger.signed(&agent, &[(&shop.account.name, PRICE, &payment.memo)]);
    let tx_id = signed.id(Pack::Legacy).to_string();
    dev.ledger.broadcast(&signed).expect("the node takes it");
    paid_for_good(&shop, &payment.id);
    let whole = json_of(&signed);
    let mut stripped = whole.clone();
    stripped["signatures"] = json!([]);
    let refused = settle(&shop.api, &session(&payment.id), &v1(&stripped, &nonce()));
    assert_eq!((&refused["errorReason"], &refused["transaction"]), (&json!("duplicate_settlement"), &json!("")));
    let body = visit(&shop.api, &path, Some(&v1(&stripped, &nonce()))).closed(409, "session_completed");
    assert!(body.get("txId").is_none(), "{body}");
    // The owner of the transaction learns that it was credited.
    let refused = settle(&shop.api, &session(&payment.id), &v1(&whole, &nonce()));
    assert_eq!((&refused["errorReason"], &refused["transaction"]), (&json!("duplicate_settlement"), &json!(tx_id)));
    let body = visit(&shop.api, &path, Some(&v1(&whole, &nonce()))).closed(409, "session_completed");
    assert_eq!(body["txId"], tx_id);
}
