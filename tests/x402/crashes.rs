//! Attack 31: the gateway is killed between claim, broadcast, record and webhook, and each settlement completes once.

use std::{path::PathBuf, time::Duration};

use engine::hive::{Pack, Transaction};
use serde_json::{Value, json};

use super::{PRICE, json_of, nonce, paid_for_good, session, settle, transfers_with_memo, v1, verify, visit};
use crate::harness::{LedgerProcess, Opened, Payer, Receiver, Reply, Serve, Shop, background, folder, pause, until};

crate::tests!(
    attack_31_killed_between_claim_and_broadcast,
    attack_31_killed_between_broadcast_and_record,
    attack_31_killed_after_a_lost_response,
    attack_31_killed_between_record_and_webhook,
    attack_31_killed_while_settling_for_another_server,
    attack_31_killed_at_any_moment,
);

/// A ledger, the data of a gateway, and a receiver that outlives both.
struct Setup {
    ledger: LedgerProcess,
    data: PathBuf,
    receiver: Receiver,
}

impl Setup {
    fn new() -> Self {
        let folder = folder("x402-crashes");
        let ledger = LedgerProcess::start(&folder.join("chain"), "127.0.0.1:0");
        Self { ledger, data: folder.join("data"), receiver: Receiver::start() }
    }

    #[track_caller]
    fn serve(&self) -> Serve {
        Serve::start(&self.data, &self.ledger.ledger)
    }

    #[track_caller]
    fn shop(&self, serve: &Serve) -> Shop {
        let shop = Shop::open(&serve.api, &self.ledger.ledger);
        shop.set_webhook(&self.receiver);
        shop
    }

    fn signed(&self, agent: &Payer, shop: &Shop, payment: &Opened) -> Transaction {
        self.ledger.ledger.signed(agent, &[(&shop.account.name, PRICE, &payment.memo)])
    }

    /// Returns whether a transaction is pending.
    fn is_waiting(&self, tx_id: &str) -> bool {
        let waiting = self.ledger.ledger.order("status", &json!({}))["mempool"].clone();
        waiting.as_array().is_some_and(|ids| ids.iter().any(|id| id == tx_id))
    }

    /// Asserts that the payment happened once, was notified once, and that its payer gets the receipt.
    #[track_caller]
    fn is_paid_once(&self, serve: &Serve, shop: &Shop, payment: &Opened, shown: &Value, hooks: usize) {
        let shop = back(shop, serve);
        let path = format!("/for/{}", payment.slug);
        let body = until("the receipt", || {
            let response = visit(&shop.api, &path, Some(shown));
            assert!(response.status == 200 || response.json()["error"] == "settlement_pending", "{}", response.text());
            (response.status == 200).then(|| response.json())
        });
        let record = paid_for_good(&shop, &payment.id);
        assert_eq!((&record["internalId"], &record["transfers"][0]["route"]), (&body["txId"], &json!("x402")));
        assert_eq!(transfers_with_memo(&self.ledger.ledger, &payment.memo), 1);
        until("the webhook", || (self.receiver.hooks().len() >= hooks).then_some(()));
        let reported = self.receiver.hooks_after(Duration::from_millis(300));
        let completed = |hook: &&crate::harness::Hook| {
            let data = &hook.json()["data"];
            data["id"] == payment.id && data["status"] == "completed"
        };
        let mut ids: Vec<_> =
            reported.iter().filter(completed).map(|hook| hook.header("webhook-id").to_owned()).collect();
        ids.dedup();
        assert_eq!(ids.len(), 1, "one event, however often it was sent");
    }
}

/// Returns the shop with the restarted gateway.
fn back(shop: &Shop, serve: &Serve) -> Shop {
    Shop { api: serve.api.clone(), ..shop.clone() }
}

/// Submits a payment in the background; the gateway may be killed before it responds.
fn show(shop: &Shop, payment: &Opened, shown: &Value) {
    let (api, path, shown) = (shop.api.clone(), format!("/for/{}", payment.slug), shown.clone());
    background(move || {
        let _ = api.get(&path).header("x-payment", &super::encode(&shown)).try_send();
    });
}

#[track_caller]
fn until_claimed(shop: &Shop, payment: &Opened, tx_id: &str) {
    shop.until(&payment.id, "claimed", |record| record["txId"] == tx_id);
}

fn attack_31_killed_between_claim_and_broadcast() {
    let setup = Setup::new();
    let mut serve = setup.serve();
    let (shop, agent) = (setup.shop(&serve), setup.ledger.ledger.account("agent"));
    let payment = shop.open_payment();
    let signed = setup.signed(&agent, &shop, &payment);
    let (tx_id, shown) = (signed.id(Pack::Legacy).to_string(), v1(&json_of(&signed), &nonce()));
    // The node responds, and no broadcast reaches the chain.
    assert_eq!(verify(&shop.api, &session(&payment.id), &shown)["isValid"], true);
    setup.ledger.ledger.order("node", &json!({ "lie": { "kind": "swallowBroadcasts" } }));
    show(&shop, &payment, &shown);
    until_claimed(&shop, &payment, &tx_id);
    serve.process.kill();
    setup.ledger.ledger.order("node", &json!({ "lie": null }));
    assert!(!setup.is_waiting(&tx_id), "nothing was broadcast");
    let serve = setup.serve();
    setup.is_paid_once(&serve, &shop, &payment, &shown, 1);
}

fn attack_31_killed_between_broadcast_and_record() {
    let setup = Setup::new();
    let mut serve = setup.serve();
    let (shop, agent) = (setup.shop(&serve), setup.ledger.ledger.account("agent"));
    let payment = shop.open_payment();
    let signed = setup.signed(&agent, &shop, &payment);
    let (tx_id, shown) = (signed.id(Pack::Legacy).to_string(), v1(&json_of(&signed), &nonce()));
    setup.ledger.ledger.order("hold_transactions", &json!({ "held": true }));
    show(&shop, &payment, &shown);
    until("the broadcast", || setup.is_waiting(&tx_id).then_some(()));
    serve.process.kill();
    setup.ledger.ledger.order("hold_transactions", &json!({ "held": false }));
    setup.ledger.ledger.produce(8);
    let serve = setup.serve();
    setup.is_paid_once(&serve, &shop, &payment, &shown, 1);
}

fn attack_31_killed_after_a_lost_response() {
    let setup = Setup::new();
    let mut serve = setup.serve();
    let (shop, agent) = (setup.shop(&serve), setup.ledger.ledger.account("agent"));
    let payment = shop.open_payment();
    let signed = setup.signed(&agent, &shop, &payment);
    let (tx_id, shown) = (signed.id(Pack::Legacy).to_string(), v1(&json_of(&signed), &nonce()));
    setup.ledger.ledger.order("hold_transactions", &json!({ "held": true }));
    setup.ledger.ledger.order("node", &json!({ "dropBroadcastReplies": 50 }));
    show(&shop, &payment, &shown);
    until("the broadcast", || setup.is_waiting(&tx_id).then_some(()));
    serve.process.kill();
    setup.ledger.ledger.order("heal", &json!({}));
    // The gateway restarts before the chain includes it and broadcasts it again: it is still one transaction.
    let serve = setup.serve();
    let record = back(&shop, &serve).payment(&payment.id);
    assert_eq!((&record["txId"], &record["completedAt"]), (&json!(tx_id), &Value::Null));
    setup.ledger.ledger.order("hold_transactions", &json!({ "held": false }));
    setup.is_paid_once(&serve, &shop, &payment, &shown, 1);
}

fn attack_31_killed_between_record_and_webhook() {
    let setup = Setup::new();
    let mut serve = setup.serve();
    let (shop, agent) = (setup.shop(&serve), setup.ledger.ledger.account("agent"));
    let payment = shop.open_payment();
    let signed = setup.signed(&agent, &shop, &payment);
    let shown = v1(&json_of(&signed), &nonce());
    // The endpoint gets the webhook and does not respond: the gateway cannot know that it was delivered.
    setup.receiver.reply(&[Reply::CloseConnection]);
    visit(&shop.api, &format!("/for/{}", payment.slug), Some(&shown)).ok(200);
    setup.receiver.hook(0);
    serve.process.kill();
    let serve = setup.serve();
    setup.is_paid_once(&serve, &shop, &payment, &shown, 2);
}

fn attack_31_killed_while_settling_for_another_server() {
    let setup = Setup::new();
    let mut serve = setup.serve();
    let ledger = &setup.ledger.ledger;
    let (agent, server) = (ledger.account("agent"), ledger.account("server"));
    let nonce = nonce();
    let memo = format!("x402:{nonce}");
    let signed = ledger.signed(&agent, &[(&server.name, PRICE, &memo)]);
    let (tx_id, shown) = (signed.id(Pack::Legacy).to_string(), v1(&json_of(&signed), &nonce));
    let target = json!({ "paymentRequirements": { "scheme": "exact", "network": "hive:mainnet",
        "maxAmountRequired": PRICE, "resource": "/a", "payTo": server.name } });
    ledger.order("hold_transactions", &json!({ "held": true }));
    let (api, body) =
        (serve.api.clone(), json!({ "paymentPayload": shown, "paymentRequirements": target["paymentRequirements"] }));
    background(move || {
        let _ = api.post(super::SETTLE, &body).try_send();
    });
    until("the broadcast", || setup.is_waiting(&tx_id).then_some(()));
    serve.process.kill();
    ledger.order("hold_transactions", &json!({ "held": false }));
    let serve = setup.serve();
    let reported = until("the outcome", || {
        let outcome = settle(&serve.api, &target, &shown);
        (outcome["errorReason"] != "settlement_pending").then_some(outcome)
    });
    assert_eq!((&reported["success"], &reported["transaction"]), (&json!(true), &json!(tx_id)));
    assert_eq!(settle(&serve.api, &target, &shown)["errorReason"], "duplicate_settlement");
    assert_eq!(transfers_with_memo(ledger, &memo), 1);
}

fn attack_31_killed_at_any_moment() {
    let setup = Setup::new();
    let mut serve = setup.serve();
    let (shop, agent) = (setup.shop(&serve), setup.ledger.ledger.account("agent"));
    let mut begun = Vec::new();
    for round in 0..8_u64 {
        let shop = back(&shop, &serve);
        let payment = shop.open_payment();
        let signed = setup.signed(&agent, &shop, &payment);
        let shown = v1(&json_of(&signed), &nonce());
        show(&shop, &payment, &shown);
        // From before the request is read until after its block.
        pause(Duration::from_millis(round * 45));
        serve.process.kill();
        serve = setup.serve();
        begun.push((payment, shown));
    }
    for (number, (payment, shown)) in begun.iter().enumerate() {
        setup.is_paid_once(&serve, &shop, payment, shown, number + 1);
    }
}
