//! The facilitator's endpoints: other servers, and sessions of this gateway.

use engine::hive::Pack;
use serde_json::{Value, json};

use super::{
    PRICE, SETTLE, VERIFY, block_of, json_of, nonce, paid_for_good, session, settle, transfers_with_memo, v1, v2,
    verify,
};
use crate::harness::{Dev, shared, until};

crate::tests!(
    supported_kinds_are_listed,
    a_session_is_verified_and_settled,
    requirements_of_version_1_succeed_once,
    requirements_of_version_2_succeed_once,
    a_seller_repeats_a_settlement_with_its_idempotency_key,
    a_settlement_above_the_key_limit_claims_nothing,
    a_sale_is_listed_with_its_resource_and_pays_no_session,
    settlements_can_be_restricted_to_registered_accounts,
    invalid_bodies_are_rejected_with_a_negative_verdict,
    a_resource_is_limited_and_has_no_invisible_characters,
    an_idempotency_key_without_a_seller_or_for_a_session_is_rejected,
);

/// Requirements of a server without a merchant here.
fn v1_requirements(to: &str, resource: &str) -> Value {
    json!({ "paymentRequirements": {
        "scheme": "exact", "network": "hive:mainnet", "maxAmountRequired": PRICE, "resource": resource, "payTo": to,
        "validBefore": "2037-01-01T00:00:00Z", "description": "", "mimeType": "", "extra": { "rate": 0.5 },
    }})
}

fn accepted(to: &str) -> Value {
    json!({ "scheme": "exact", "network": "hive:mainnet", "amount": "1500", "asset": "HBD", "payTo": to,
        "maxTimeoutSeconds": 60, "extra": {} })
}

fn supported_kinds_are_listed() {
    let api = &shared().api;
    let health = api.get("/api/public/x402/health").send().ok(200);
    assert_eq!(health["status"], "ok");
    assert_eq!(api.get("/api/public/x402/supported-networks").send().ok(200), json!(["hive:mainnet"]));
    let kind =
        |version, network: &str| json!({"x402Version": version, "scheme": "exact", "network": network, "extra": {}});
    let kinds = [kind(2, "hive:mainnet"), kind(1, "hive:mainnet"), kind(2, "hive:beeab0de000000000000000000000000")];
    assert_eq!(
        api.get("/api/public/x402/supported").send().ok(200),
        json!({"kinds": kinds, "extensions": ["payment-identifier"], "signers": {}})
    );
}

fn a_session_is_verified_and_settled() {
    let dev = shared();
    let (shop, agent) = (dev.shop(), dev.ledger.account("agent"));
    let payment = shop.open_payment();
    let signed = dev.ledger.signed(&agent, &[(&shop.account.name, PRICE, &payment.memo)]);
    let (tx_id, target) = (signed.id(Pack::Legacy).to_string(), session(&payment.id));
    let shown = v1(&json_of(&signed), &nonce());
    for _ in 0..2 {
        assert_eq!(verify(&shop.api, &target, &shown), json!({ "isValid": true, "payer": agent.name }));
    }
    assert_eq!(shop.payment(&payment.id)["transfers"], json!([]), "verifying keeps nothing");
    let settled = settle(&shop.api, &target, &shown);
    assert_eq!((&settled["success"], &settled["transaction"]), (&json!(true), &json!(tx_id)));
    assert_eq!((&settled["payer"], &settled["amount"]), (&json!(agent.name), &json!("1500")));
    assert_eq!(settled["blockNum"].as_u64(), block_of(&dev.ledger, &tx_id));
    paid_for_good(&shop, &payment.id);
    let again = settle(&shop.api, &target, &shown);
    assert_eq!((&again["success"], &again["transaction"]), (&json!(true), &json!(tx_id)), "the stored receipt");
    let verdict = verify(&shop.api, &target, &shown);
    assert_eq!(verdict["invalidReason"], "duplicate_settlement");
    assert_eq!(transfers_with_memo(&dev.ledger, &payment.memo), 1);
}

fn requirements_of_version_1_succeed_once() {
    let dev = shared();
    let (server, agent) = (dev.ledger.account("server"), dev.ledger.account("agent"));
    let nonce = nonce();
    let memo = format!("x402:{nonce}");
    let signed = dev.ledger.signed(&agent, &[(&server.name, PRICE, &memo)]);
    let tx_id = signed.id(Pack::Legacy).to_string();
    let (shown, target) = (v1(&json_of(&signed), &nonce), v1_requirements(&server.name, "https://x.example/a"));
    assert_eq!(verify(&dev.api, &target, &shown), json!({ "isValid": true, "payer": agent.name }));
    let settled = settle(&dev.api, &target, &shown);
    assert_eq!((&settled["success"], &settled["txId"]), (&json!(true), &json!(tx_id)));
    assert_eq!((&settled["payer"], &settled["amount"]), (&json!(agent.name), &json!("1500")));
    // A success is reported once: a repeated request learns of it, a request for something else does not.
    for (target, reported) in [(&target, tx_id.as_str()), (&v1_requirements(&server.name, "https://x.example/b"), "")] {
        let again = settle(&dev.api, target, &shown);
        assert_eq!((&again["errorReason"], &again["transaction"]), (&json!("duplicate_settlement"), &json!(reported)));
        assert_eq!(verify(&dev.api, target, &shown)["invalidReason"], "duplicate_settlement");
    }
    assert_eq!(transfers_with_memo(&dev.ledger, &memo), 1);
}

fn requirements_of_version_2_succeed_once() {
    let dev = shared();
    let (server, agent) = (dev.ledger.account("server"), dev.ledger.account("agent"));
    let accepted = accepted(&server.name);
    let target = json!({ "x402Version": 2, "paymentRequirements": accepted });
    let nonce = nonce();
    let signed = dev.ledger.signed(&agent, &[(&server.name, PRICE, &format!("x402:{nonce}"))]);
    let mut shown = v2(&json_of(&signed), &nonce, &accepted);
    shown["resource"] = json!({ "url": "mcp://tool/x", "description": "" });
    shown["extensions"] = json!({ "payment-identifier": { "info": { "id": "0123456789abcdef" }, "schema": {} } });
    let mut swapped = shown.clone();
    swapped["accepted"]["payTo"] = json!("third.party");
    assert_eq!(verify(&dev.api, &target, &swapped)["invalidReason"], "accepted_requirements_mismatch");
    let more = dev.ledger.signed(&agent, &[(&server.name, "1.501 HBD", &format!("x402:{nonce}"))]);
    let verdict = verify(&dev.api, &target, &v2(&json_of(&more), &nonce, &accepted));
    assert_eq!(verdict["invalidReason"], "invalid_exact_hive_payload_amount_mismatch");
    assert_eq!(verify(&dev.api, &target, &shown)["isValid"], true);
    assert_eq!(settle(&dev.api, &target, &shown)["success"], true);
    assert_eq!(settle(&dev.api, &target, &shown)["errorReason"], "duplicate_settlement");
}

fn a_seller_repeats_a_settlement_with_its_idempotency_key() {
    let dev = shared();
    let (shop, agent, server) = (dev.shop(), dev.ledger.account("agent"), dev.ledger.account("server"));
    let accepted = accepted(&server.name);
    let payment = |resource: &str| {
        let nonce = nonce();
        let signed = dev.ledger.signed(&agent, &[(&server.name, PRICE, &format!("x402:{nonce}"))]);
        let mut requirements = accepted.clone();
        requirements["resource"] = json!(resource);
        json!({ "x402Version": 2, "paymentRequirements": requirements,
            "paymentPayload": v2(&json_of(&signed), &nonce, &accepted) })
    };
    let request = |body: &Value, key: Option<&str>, name: Option<&str>| {
        let mut request = dev.api.post(SETTLE, body);
        if let Some(key) = key {
            request = request.x_api_key(key);
        }
        if let Some(name) = name {
            request = request.header("idempotency-key", name);
        }
        request.send()
    };
    let key = Some(shop.key.as_str());
    let name = Some("order-7");
    let first = payment("/a");
    let reported = request(&first, key, name);
    assert_eq!(reported.header("idempotent-replayed"), None);
    let mut reported = reported.ok(200);
    assert_eq!(reported["success"], true, "{reported}");
    let again = request(&first, key, name);
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    reported["replayed"] = json!(true);
    assert_eq!(again.ok(200), reported);
    for other in [payment("/a"), payment("/b")] {
        let refused = request(&other, key, name).ok(422);
        assert_eq!((&refused["reason"], &refused["success"]), (&json!("idempotency_key_reused"), &json!(false)));
        assert_eq!(refused["transaction"], "");
    }
    // An unknown caller gets no result, whatever key it sends.
    let refused = request(&first, None, name).ok(400);
    assert_eq!((&refused["details"][0]["field"], &refused["success"]), (&json!("Idempotency-Key"), &json!(false)));
    for (key, name) in [(None, None), (Some(dev.shop().key.as_str()), name), (key, Some("order-8"))] {
        let refused = request(&first, key, name).ok(200);
        assert_eq!(refused["errorReason"], "duplicate_settlement", "{refused}");
    }
    let wrong = request(&payment("/a"), Some("sk_live_nobody"), Some("order-9")).ok(401);
    assert_eq!((&wrong["reason"], &wrong["success"]), (&json!("invalid_api_key"), &json!(false)));
    let wrong = request(&payment("/a"), key, Some("")).ok(400);
    assert_eq!((&wrong["details"][0]["field"], &wrong["success"]), (&json!("Idempotency-Key"), &json!(false)));
}

fn a_settlement_above_the_key_limit_claims_nothing() {
    let dev = Dev::with(&["--set=limits.idempotency_keys=1"]);
    let (shop, agent) = (dev.shop(), dev.ledger.account("agent"));
    let payment = || {
        let nonce = nonce();
        let signed = dev.ledger.signed(&agent, &[(&shop.account.name, PRICE, &format!("x402:{nonce}"))]);
        let mut target = v1_requirements(&shop.account.name, "/report");
        target["paymentPayload"] = v1(&json_of(&signed), &nonce);
        target
    };
    let settle = |body: &Value| dev.api.post(SETTLE, body).x_api_key(&shop.key);
    assert_eq!(settle(&payment()).header("idempotency-key", "order-1").send().ok(200)["success"], true);
    let second = payment();
    let refused = settle(&second).header("idempotency-key", "order-2").send();
    let body = refused.ok(429);
    assert_eq!((&body["reason"], &body["success"]), (&json!("too_many_idempotency_keys"), &json!(false)), "{body}");
    assert_eq!(refused.header("retry-after"), Some("300"));
    assert_eq!(settle(&second).send().ok(200)["success"], true, "the refused settlement claimed nothing");
}

fn a_sale_is_listed_with_its_resource_and_pays_no_session() {
    let dev = Dev::with(&["--set=log.level=info"]);
    let (shop, agent) = (dev.shop().prove(), dev.ledger.account("agent"));
    let payment = shop.open_payment();
    let nonce = nonce();
    let signed = dev.ledger.signed(&agent, &[(&shop.account.name, PRICE, &format!("x402:{nonce}"))]);
    let tx_id = signed.id(Pack::Legacy).to_string();
    let resource = "https://shop.example/reports/7,=1";
    let mut target = v1_requirements(&shop.account.name, resource);
    target["paymentPayload"] = v1(&json_of(&signed), &nonce);
    let settled =
        dev.api.post(SETTLE, &target).x_api_key(&shop.key).header("idempotency-key", "order-1").send().ok(200);
    assert_eq!(settled["success"], true, "{settled}");
    let sale = until("the sale to be listed", || {
        shop.get("/api/public/x402/sales").send().ok(200)["data"].as_array().expect("data").first().cloned()
    });
    assert_eq!((&sale["kind"], &sale["resource"], &sale["txId"]), (&json!("x402"), &json!(resource), &json!(tx_id)));
    assert_eq!((&sale["payer"], &sale["payTo"]), (&json!(agent.name), &json!(shop.account.name)));
    assert_eq!(sale["amount"], json!({ "value": "1500", "formatted": "1.500 HBD", "currency": "HBD" }));
    assert_eq!(shop.get("/api/public/unmatched").send().ok(200)["data"], json!([]));
    let log = until("a line about it", || Some(dev.process.log()).filter(|log| log.contains("sale by x402")));
    let of_it = |line: &&str| line.contains(&tx_id) && line.contains("unmatched transfer");
    assert_eq!(log.lines().find(of_it), None, "a sale is no unmatched transfer");
    let path = format!("/api/public/unmatched/{}", sale["id"].as_str().expect("an id"));
    let assign = json!({ "paymentId": payment.id });
    shop.post(&format!("{path}/assign"), &assign).send().refused(409, "transfer_settled");
    shop.post(&format!("{path}/ignore"), &json!({})).send().refused(409, "transfer_settled");
    assert_eq!(shop.payment(&payment.id)["status"], "pending");
    let csv = shop.get("/api/public/x402/sales/export?format=csv").send();
    let csv = csv.text();
    let lines: Vec<_> = csv.lines().collect();
    assert_eq!(lines.len(), 2, "{csv}");
    assert!(lines[0].starts_with("id,kind,blockTime,currency,amount,"), "{csv}");
    assert!(lines[1].contains(",x402,") && lines[1].contains("\"https://shop.example/reports/7,=1\""), "{csv}");
    assert_eq!(shop.get("/api/public/x402/sales/export?format=json").send().ok(200), json!([sale]));
    let events = shop.get("/api/public/events").send().ok(200);
    let reported = &events["events"][0];
    assert_eq!(
        (&reported["type"], &reported["data"]["resource"]),
        (&json!("x402.settled"), &json!(resource)),
        "{events}"
    );
    assert_eq!((&reported["data"]["txId"], &reported["data"]["value"]), (&json!(tx_id), &json!("1500")));
    assert_eq!(events["events"].as_array().map(Vec::len), Some(1));
    // Nobody else can read it, and unknown parameters are rejected.
    assert_eq!(dev.shop().get("/api/public/x402/sales").send().ok(200)["data"], json!([]));
    shop.get("/api/public/x402/sales?page=2").send().refused(400, "unknown_field");
}

fn settlements_can_be_restricted_to_registered_accounts() {
    let dev = Dev::with(&["--set=x402.only_registered=true"]);
    let (shop, agent, server) = (dev.shop(), dev.ledger.account("agent"), dev.ledger.account("server"));
    for (to, reason) in [(&server.name, Some("invalid_payment_requirements")), (&shop.account.name, None)] {
        let nonce = nonce();
        let signed = dev.ledger.signed(&agent, &[(to, PRICE, &format!("x402:{nonce}"))]);
        let outcome = settle(&dev.api, &v1_requirements(to, "/a"), &v1(&json_of(&signed), &nonce));
        assert_eq!(outcome.get("errorReason").and_then(Value::as_str), reason, "{outcome}");
    }
}

fn invalid_bodies_are_rejected_with_a_negative_verdict() {
    let dev = shared();
    let (shop, agent) = (dev.shop(), dev.ledger.account("agent"));
    let payment = shop.open_payment();
    let signed = dev.ledger.signed(&agent, &[(&shop.account.name, PRICE, &payment.memo)]);
    let shown = v1(&json_of(&signed), &nonce());
    let requirements = v1_requirements(&shop.account.name, "/a")["paymentRequirements"].clone();
    let both = json!({ "sessionId": payment.id, "paymentRequirements": requirements, "paymentPayload": shown });
    let large = json!({ "sessionId": payment.id, "paymentPayload": shown, "x": "x".repeat(64 << 10) });
    for (path, no) in [(VERIFY, "isValid"), (SETTLE, "success")] {
        for (body, status) in [
            (String::new(), 400),
            ("{\"sessionId\":".to_owned(), 400),
            ("[]".to_owned(), 400),
            ("{}".to_owned(), 400),
            (json!({ "paymentPayload": shown }).to_string(), 400),
            (json!({ "sessionId": payment.id }).to_string(), 400),
            (both.to_string(), 400),
            (large.to_string(), 413),
        ] {
            let response = shop.api.request("POST", path).header("content-type", "application/json").body(body).send();
            let report = response.ok(status);
            assert_eq!((&report[no], &report["statusCode"]), (&json!(false), &json!(status)), "{report}");
            assert_eq!(response.header("x-request-id"), report["requestId"].as_str());
            if path == SETTLE {
                assert_eq!(
                    (&report["transaction"], &report["network"]),
                    (&json!(""), &json!("hive:mainnet")),
                    "{report}"
                );
            }
        }
    }
}

fn a_resource_is_limited_and_has_no_invisible_characters() {
    let dev = shared();
    let (server, agent) = (dev.ledger.account("server"), dev.ledger.account("agent"));
    let nonce = nonce();
    let memo = format!("x402:{nonce}");
    let shown = v1(&json_of(&dev.ledger.signed(&agent, &[(&server.name, PRICE, &memo)])), &nonce);
    let long = "é".repeat(2_049);
    for resource in [long.as_str(), "/a\u{202e}gpj.b", "/a\u{7}", "/a\nb", "/\u{200b}", "/\u{e0041}"] {
        for target in [
            v1_requirements(&server.name, resource),
            json!({ "x402Version": 2, "paymentRequirements": {
                "scheme": "exact", "network": "hive:mainnet", "amount": "1500", "asset": "HBD",
                "payTo": server.name, "resource": { "url": resource } } }),
        ] {
            let verdict = verify(&dev.api, &target, &shown);
            assert_eq!(verdict["invalidReason"], "invalid_payment_requirements", "{resource:?}");
            assert!(
                verdict["invalidMessage"].as_str().is_some_and(|report| report.starts_with("resource ")),
                "{verdict}"
            );
            let refused = settle(&dev.api, &target, &shown);
            assert_eq!(refused["errorReason"], "invalid_payment_requirements", "{resource:?}");
        }
    }
    assert_eq!(transfers_with_memo(&dev.ledger, &memo), 0);
    for fine in ["", "https://größe.example/a b/🐝?x=%00", &"é".repeat(2_048)] {
        assert_eq!(verify(&dev.api, &v1_requirements(&server.name, fine), &shown)["isValid"], true, "{fine:?}");
    }
}

fn an_idempotency_key_without_a_seller_or_for_a_session_is_rejected() {
    let dev = shared();
    let (shop, agent, server) = (dev.shop(), dev.ledger.account("agent"), dev.ledger.account("server"));
    let payment = shop.open_payment();
    let signed = dev.ledger.signed(&agent, &[(&shop.account.name, PRICE, &payment.memo)]);
    let mut of_session = session(&payment.id);
    of_session["paymentPayload"] = v1(&json_of(&signed), &nonce());
    let nonce = nonce();
    let memo = format!("x402:{nonce}");
    let mut of_server = v1_requirements(&server.name, "/a");
    of_server["paymentPayload"] = v1(&json_of(&dev.ledger.signed(&agent, &[(&server.name, PRICE, &memo)])), &nonce);
    for (path, body, key) in
        [(SETTLE, &of_session, Some(&shop.key)), (SETTLE, &of_session, None), (SETTLE, &of_server, None)]
    {
        let request = dev.api.post(path, body).header("idempotency-key", "order-1");
        let refused = key.into_iter().fold(request, |request, key| request.x_api_key(key)).send().ok(400);
        assert_eq!(refused["details"][0]["field"], "Idempotency-Key", "{refused}");
        assert_eq!((&refused["success"], &refused["transaction"]), (&json!(false), &json!("")));
    }
    assert_eq!(transfers_with_memo(&dev.ledger, &memo), 0);
    assert_eq!(shop.payment(&payment.id)["status"], "pending");
    // Verification changes nothing: an idempotency key has no meaning there.
    let verdict = dev.api.post(VERIFY, &of_session).header("idempotency-key", "order-1").send().ok(200);
    assert_eq!(verdict["isValid"], true, "{verdict}");
    assert_eq!(dev.api.post(SETTLE, &of_session).send().ok(200)["success"], true);
}
