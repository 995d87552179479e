//! Concurrent payments, and a ledger that is slow, silent or unreachable: one payment, one transfer, one webhook.

use std::{sync::Arc, time::Duration};

use engine::hive::Pack;
use serde_json::{Value, json};

use super::{
    PRICE, SETTLE, block_of, decode, encode, json_of, nonce, paid_for_good, session, settle, transfers_with_memo, v1,
    verify, visit,
};
use crate::harness::{
    Api, Dev, Ledger, Process, Receiver, Serve, Shop, background, folder, shared, until, until_ready,
};

crate::tests!(
    attack_02_a_hundred_settlements_over_lagging_nodes_are_one_transfer,
    attack_03_one_of_many_payers_of_a_session_pays,
    attack_04_a_payer_who_also_broadcasts_pays_once,
    attack_08_a_pending_outcome_is_reported_until_it_is_known,
    attack_14_a_lost_response_results_in_one_transfer,
    attack_30_without_a_node_the_payer_is_not_blamed,
);

/// Three nodes of one chain at different heights.
struct LaggingHouse {
    ledger: Ledger,
    serve: Serve,
    _process: Process,
}

impl LaggingHouse {
    fn new() -> Self {
        let folder = folder("lagging");
        let chain = folder.join("chain");
        let mut args = vec!["ledger", "--json", "--control-listen", "127.0.0.1:0", "--block-interval", "250ms"];
        args.extend(["--listen", "127.0.0.1:0"].repeat(3));
        args.extend(["--state", chain.to_str().expect("a path")]);
        let mut process = Process::start(&args);
        let report = process.ready();
        let nodes: Vec<&str> = report["nodes"].as_array().expect("nodes").iter().filter_map(Value::as_str).collect();
        let ledger = Ledger::new(nodes[0], report["control"].as_str().expect("an address"));
        let mut args = Serve::args(&folder.join("data"), &ledger, &[]);
        args.extend(nodes[1..].iter().map(|node| format!("--node={node}")));
        let mut gateway = Process::start(&args);
        let api = Api::new(&format!("http://{}", gateway.log_after("listening on ")));
        until_ready(&api);
        Self { ledger, serve: Serve { api, process: gateway }, _process: process }
    }
}

fn attack_02_a_hundred_settlements_over_lagging_nodes_are_one_transfer() {
    let setup = LaggingHouse::new();
    for (node, blocks) in [(0, 0), (1, 2), (2, 5)] {
        setup.ledger.order("node", &json!({ "node": node, "lagBlocks": blocks, "delayMs": node * 15 }));
    }
    let (shop, receiver) = (Shop::open(&setup.serve.api, &setup.ledger), Receiver::start());
    shop.set_webhook(&receiver);
    let agent = setup.ledger.account("agent");
    let payment = shop.open_payment();
    let signed = setup.ledger.signed(&agent, &[(&shop.account.name, PRICE, &payment.memo)]);
    let tx_id = signed.id(Pack::Legacy).to_string();
    let shown = Arc::new(v1(&json_of(&signed), &nonce()));
    let path = Arc::new(format!("/for/{}", payment.slug));
    let callers: Vec<_> = (0..100)
        .map(|number| {
            let (api, shown, path) = (shop.api.clone(), Arc::clone(&shown), Arc::clone(&path));
            let id = payment.id.clone();
            background(move || {
                if number % 2 == 0 {
                    settle(&api, &session(&id), &shown)
                } else {
                    visit(&api, &path, Some(&shown)).ok(200)
                }
            })
        })
        .collect();
    for caller in callers {
        let outcome = caller.join().expect("a response");
        assert_eq!((&outcome["success"], &outcome["txId"]), (&json!(true), &json!(tx_id)), "{outcome}");
        assert_eq!(outcome["payer"], agent.name);
    }
    setup.ledger.order("heal", &json!({}));
    paid_for_good(&shop, &payment.id);
    receiver.hook(0).verify(&shop.secret);
    assert_eq!(receiver.hooks_after(Duration::from_millis(500)).len(), 1);
    assert_eq!(transfers_with_memo(&setup.ledger, &payment.memo), 1);
    // For other servers: of a hundred callers one gets the success.
    let server = setup.ledger.account("server");
    let nonce = nonce();
    let memo = format!("x402:{nonce}");
    let signed = setup.ledger.signed(&agent, &[(&server.name, PRICE, &memo)]);
    let body = Arc::new(json!({
        "paymentRequirements": { "scheme": "exact", "network": "hive:mainnet", "maxAmountRequired": PRICE,
            "resource": "/a", "payTo": server.name },
        "paymentPayload": v1(&json_of(&signed), &nonce),
    }));
    let callers: Vec<_> = (0..100)
        .map(|_| {
            let (api, body) = (shop.api.clone(), Arc::clone(&body));
            background(move || api.post(SETTLE, &body).send().ok(200))
        })
        .collect();
    let outcomes: Vec<_> = callers.into_iter().map(|caller| caller.join().expect("a response")).collect();
    assert_eq!(outcomes.iter().filter(|outcome| outcome["success"] == true).count(), 1, "{outcomes:?}");
    for outcome in outcomes.iter().filter(|outcome| outcome["success"] == false) {
        assert_eq!(outcome["errorReason"], "duplicate_settlement", "{outcome}");
        assert_eq!(outcome["transaction"], signed.id(Pack::Legacy).to_string());
    }
    assert_eq!(transfers_with_memo(&setup.ledger, &memo), 1);
}

fn attack_03_one_of_many_payers_of_a_session_pays() {
    let dev = shared();
    let shop = dev.shop();
    let payment = shop.open_payment();
    let payers: Vec<_> = (0..12)
        .map(|_| {
            let agent = dev.ledger.account("agent");
            let signed = dev.ledger.signed(&agent, &[(&shop.account.name, PRICE, &payment.memo)]);
            let (api, path) = (shop.api.clone(), format!("/for/{}", payment.slug));
            background(move || {
                let response = visit(&api, &path, Some(&v1(&json_of(&signed), &nonce())));
                (signed.id(Pack::Legacy).to_string(), response)
            })
        })
        .collect();
    let mut winners = Vec::new();
    for payer in payers {
        let (tx_id, response) = payer.join().expect("a response");
        if response.status == 200 {
            assert_eq!(response.json()["txId"], tx_id);
            winners.push(tx_id);
        } else {
            let body = response.json();
            assert_eq!(response.status, 409, "{body}");
            assert!(body.get("txId").is_none_or(|named| *named == tx_id), "{body}");
            assert!(["duplicate_settlement", "session_completed"].contains(&body["error"].as_str().expect("a word")));
            assert!(response.header("x-payment").is_none() && response.header("payment-required").is_none());
            assert_eq!(block_of(&dev.ledger, &tx_id), None, "the loser keeps its money");
        }
    }
    assert_eq!(winners.len(), 1);
    assert_eq!(paid_for_good(&shop, &payment.id)["internalId"], winners[0]);
    assert_eq!(transfers_with_memo(&dev.ledger, &payment.memo), 1);
}

fn attack_04_a_payer_who_also_broadcasts_pays_once() {
    let dev = shared();
    let (shop, receiver, agent) = (dev.shop(), Receiver::start(), dev.ledger.account("agent"));
    shop.set_webhook(&receiver);
    for (number, first) in ["payer", "gateway", "both"].into_iter().enumerate() {
        let payment = shop.open_payment();
        let signed = dev.ledger.signed(&agent, &[(&shop.account.name, PRICE, &payment.memo)]);
        let shown = v1(&json_of(&signed), &nonce());
        let (api, path) = (shop.api.clone(), format!("/for/{}", payment.slug));
        if first == "payer" {
            dev.ledger.broadcast(&signed).expect("the node takes it");
            shop.until(&payment.id, "seen", |p| p["transfers"].as_array().is_some_and(|t| !t.is_empty()));
        }
        let settling = background(move || visit(&api, &path, Some(&shown)));
        if first == "both" {
            // The second one is a duplicate to the node and no failure to the caller.
            let _ = dev.ledger.broadcast(&signed);
        }
        let response = settling.join().expect("a response");
        // A transaction that its payer broadcast before submitting it is a wallet payment: it pays, and has no receipt.
        let body = match (first, response.status) {
            ("payer", _) | ("both", 409) => response.closed(409, "duplicate_settlement"),
            _ => response.ok(200),
        };
        assert_eq!(body["txId"], signed.id(Pack::Legacy).to_string(), "{first}");
        paid_for_good(&shop, &payment.id);
        assert_eq!(transfers_with_memo(&dev.ledger, &payment.memo), 1, "{first}");
        receiver.hook(number);
    }
    assert_eq!(receiver.hooks_after(Duration::from_millis(300)).len(), 3, "one webhook each");
}

fn attack_08_a_pending_outcome_is_reported_until_it_is_known() {
    let dev = Dev::start();
    let (shop, receiver, agent) = (dev.shop(), Receiver::start(), dev.ledger.account("agent"));
    shop.set_webhook(&receiver);
    let payment = shop.open_payment();
    let path = format!("/for/{}", payment.slug);
    let signed = dev.ledger.signed(&agent, &[(&shop.account.name, PRICE, &payment.memo)]);
    let tx_id = signed.id(Pack::Legacy).to_string();
    let shown = v1(&json_of(&signed), &nonce());
    dev.ledger.order("hold_transactions", &json!({ "held": true }));
    let (api, at, first) = (shop.api.clone(), path.clone(), shown.clone());
    let waiting = background(move || visit(&api, &at, Some(&first)));
    until("the claim to be in flight", || (shop.payment(&payment.id)["txId"] == tx_id).then_some(()));
    // Meanwhile no payment is requested, and no cancellation is accepted.
    let busy = visit(&shop.api, &path, None).closed(409, "payment_in_flight");
    assert_eq!((busy.get("txId"), &busy["sessionId"]), (None, &json!(payment.id)), "the payer is not disclosed");
    assert_eq!(busy["status"], "pending", "until the time to wait is over");
    shop.cancel(&payment.id).refused(409, "payment_in_flight");
    let other = dev.ledger.signed(&agent, &[(&shop.account.name, PRICE, &payment.memo)]);
    let refused = visit(&shop.api, &path, Some(&v1(&json_of(&other), &nonce())));
    let body = refused.closed(409, "duplicate_settlement");
    assert!(body.get("txId").is_none() && !refused.text().contains(&tx_id), "{body}");
    assert_eq!(refused.receipt()["transaction"], "");

    let is_pending = |response: &crate::harness::Response| {
        let body = response.closed(402, "settlement_pending");
        for (member, value) in [
            ("success", json!(false)),
            ("error", json!("settlement_pending")),
            ("txId", json!(tx_id)),
            ("sessionId", json!(payment.id)),
            ("status", json!("processing")),
        ] {
            assert_eq!(body[member], value, "{member}");
        }
        assert_eq!(response.header("retry-after"), Some("3"));
        let receipt = response.receipt();
        assert_eq!((&receipt["errorReason"], &receipt["transaction"]), (&json!("settlement_pending"), &json!(tx_id)));
        assert_eq!(receipt["payer"], agent.name);
    };
    is_pending(&waiting.join().expect("a response"));
    shop.until_status(&payment.id, "processing");
    assert_eq!(visit(&shop.api, &path, None).closed(409, "payment_in_flight")["status"], "processing");
    let again = settle(&shop.api, &session(&payment.id), &shown);
    assert_eq!((&again["errorReason"], &again["transaction"]), (&json!("settlement_pending"), &json!(tx_id)));
    is_pending(&visit(&shop.api, &path, Some(&shown)));

    dev.ledger.order("hold_transactions", &json!({ "held": false }));
    let paid = until("the outcome to be known", || {
        let response = visit(&shop.api, &path, Some(&shown));
        (response.status == 200).then_some(response)
    });
    assert_eq!(paid.json()["txId"], tx_id);
    paid_for_good(&shop, &payment.id);
    assert_eq!(transfers_with_memo(&dev.ledger, &payment.memo), 1);
    let statuses: Vec<_> = (0..2).map(|number| receiver.hook(number).json()["data"]["status"].clone()).collect();
    assert_eq!(statuses, ["processing", "completed"]);
    assert_eq!(receiver.hooks_after(Duration::from_millis(300)).len(), 2);
}

fn attack_14_a_lost_response_results_in_one_transfer() {
    let dev = Dev::start();
    let (shop, agent) = (dev.shop(), dev.ledger.account("agent"));
    for lost in [1, 3] {
        let payment = shop.open_payment();
        let signed = dev.ledger.signed(&agent, &[(&shop.account.name, PRICE, &payment.memo)]);
        let shown = v1(&json_of(&signed), &nonce());
        dev.ledger.order("node", &json!({ "dropBroadcastReplies": lost }));
        let path = format!("/for/{}", payment.slug);
        let body = visit(&shop.api, &path, Some(&shown)).ok(200);
        assert_eq!(body["txId"], signed.id(Pack::Legacy).to_string(), "{lost}");
        assert_eq!(visit(&shop.api, &path, Some(&shown)).ok(200)["txId"], body["txId"]);
        paid_for_good(&shop, &payment.id);
        assert_eq!(transfers_with_memo(&dev.ledger, &payment.memo), 1);
        dev.ledger.order("heal", &json!({}));
    }
}

fn attack_30_without_a_node_the_payer_is_not_blamed() {
    let dev = Dev::start();
    let (shop, agent) = (dev.shop(), dev.ledger.account("agent"));
    let payment = shop.open_payment();
    let path = format!("/for/{}", payment.slug);
    let signed = dev.ledger.signed(&agent, &[(&shop.account.name, PRICE, &payment.memo)]);
    let shown = v1(&json_of(&signed), &nonce());
    for fault in [json!({ "disconnected": true }), json!({ "disconnected": false, "garbage": true })] {
        dev.ledger.order("node", &fault);
        // An invalid payment is detected without a node.
        let cheap = dev.ledger.order("status", &json!({}))["head"]["time"].is_string();
        assert!(cheap);
        let answer = visit(&shop.api, &path, Some(&shown));
        assert_eq!(answer.status, 503, "{}", answer.text());
        let body = answer.json();
        assert_eq!((&body["error"], &body["reason"]), (&json!("unexpected_settle_error"), &json!("node_unavailable")));
        assert!(answer.header("retry-after").is_some());
        assert!(answer.header("x-payment").is_none() && body.get("accepts").is_none());
        assert_eq!(decode(answer.header("payment-response").expect("a receipt"))["success"], false);
        for (route, no, word, name) in [
            ("verify", "isValid", "unexpected_verify_error", "invalidReason"),
            ("settle", "success", "unexpected_settle_error", "errorReason"),
        ] {
            let body = json!({ "sessionId": payment.id, "paymentPayload": shown });
            let answer = shop.api.post(&format!("/api/public/x402/{route}"), &body).send();
            let report = answer.ok(503);
            assert_eq!((&report[no], &report[name]), (&json!(false), &json!(word)), "{report}");
            assert!(answer.header("retry-after").is_some());
        }
        // An unpaid agent still gets the payment options.
        assert_eq!(visit(&shop.api, &path, None).status, 402);
        until("the gateway to notice", || {
            let answer = shop.api.get("/api/public/x402/health").send();
            (answer.status == 503).then_some(())
        });
        dev.ledger.order("heal", &json!({}));
        dev.until_ready();
    }
    assert_eq!(shop.payment(&payment.id)["status"], "pending");
    until("the same payment to be taken", || {
        let answer = shop.api.get(&path).header("x-payment", &encode(&shown)).send();
        (answer.status == 200).then_some(())
    });
    paid_for_good(&shop, &payment.id);
    let poor = dev.ledger.signed(&agent, &[(&shop.account.name, "0.001 HBD", &payment.memo)]);
    assert_eq!(verify(&shop.api, &session(&payment.id), &v1(&json_of(&poor), &nonce()))["isValid"], false);
}
