//! One faulty node of several (stalled, slow, stale, disconnected or malicious) at each position of the list: the others
//! decide in time.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Ledger, LedgerProcess, Payer, Serve, Shop, folder, order, pause, until};

crate::tests!(
    a_transfer_invented_by_one_node_of_three_is_never_credited,
    one_of_two_nodes_decides_nothing_which_is_reported,
    a_recovered_node_is_healthy_at_every_position,
    a_price_invented_by_one_node_is_never_used,
    a_stalled_chain_is_detected,
);

const PRICE: &str = "1.500 HBD";
const ANYWHERE: [&str; 3] = ["127.0.0.1:0"; 3];

/// A ledger of three nodes with a gateway.
struct Net {
    setup: LedgerProcess,
    serve: Serve,
    shop: Shop,
    payer: Payer,
}

impl Net {
    fn start(nodes: usize, more: &[&str]) -> Self {
        let folder = folder("majority");
        let setup = LedgerProcess::with_nodes(&folder.join("chain"), &ANYWHERE[..nodes]);
        setup.ledger.produce(450);
        let serve = Serve::over(&folder.join("data"), &setup.nodes, more);
        let (shop, payer) = (Shop::open(&serve.api, &setup.ledger), setup.ledger.account("payer"));
        Self { setup, serve, shop, payer }
    }

    fn fault(&self, place: usize, fault: &Value) {
        let mut params = fault.clone();
        params["node"] = json!(place);
        self.setup.ledger.order("node", &params);
    }

    fn clear_faults(&self) {
        self.setup.ledger.order("heal", &json!({}));
    }

    /// Returns the ledger through a healthy node, as the payer's wallet sees it.
    fn beside(&self, place: usize) -> Ledger {
        Ledger::new(&self.setup.nodes[(place + 1) % self.setup.nodes.len()], &self.setup.ledger.control.base)
    }

    /// Pays from a wallet.
    fn pays(&self, ledger: &Ledger) {
        let payment = self.shop.open_payment();
        ledger.transfer(&self.payer, &self.shop.account.name, PRICE, &payment.memo);
        let done = self.shop.until_status(&payment.id, "completed");
        assert_eq!((&done["amountPaid"], &done["exceptions"]), (&json!("1500"), &json!([])), "{done}");
    }

    fn condition(&self, place: usize) -> String {
        let ready = self.serve.api.get("/readyz").send().json();
        ready["nodes"][place]["condition"].as_str().unwrap_or_default().to_owned()
    }

    #[track_caller]
    fn until_condition(&self, place: usize, wanted: &str) {
        until(&format!("node {place} to be {wanted}"), || (self.condition(place) == wanted).then_some(()));
    }
}

fn a_transfer_invented_by_one_node_of_three_is_never_credited() {
    let net = Net::start(3, &[]);
    for place in 0..3 {
        let big = json!({ "amount": "900000", "currency": "HBD", "description": "A gold mug" });
        let invented = net.shop.open_with(&big);
        let head = net.setup.ledger.order("status", &json!({}))["head"]["number"].as_u64().expect("a number");
        let lie = json!({
            "kind": "inventTransfer", "block": head + 3, "from": net.payer.name, "to": net.shop.account.name,
            "amount": "900.000 HBD", "memo": invented.memo,
        });
        net.fault(place, &json!({ "lie": lie }));
        // A payment after the invented block completes, so that block was read.
        net.setup.ledger.produce(4);
        net.pays(&net.beside(place));
        let record = net.shop.payment(&invented.id);
        assert_eq!((&record["status"], &record["transfers"]), (&json!("pending"), &json!([])), "{record}");
        net.clear_faults();
    }
}

fn one_of_two_nodes_decides_nothing_which_is_reported() {
    let mut net = Net::start(2, &[]);
    net.serve.process.log_after("2 of 2 ledger nodes must agree");
    for place in 0..2 {
        let big = json!({ "amount": "900000", "currency": "HBD", "description": "A gold mug" });
        let invented = net.shop.open_with(&big);
        let head = net.setup.ledger.order("status", &json!({}))["head"]["number"].as_u64().expect("a number");
        let lie = json!({
            "kind": "inventTransfer", "block": head + 3, "from": net.payer.name, "to": net.shop.account.name,
            "amount": "900.000 HBD", "memo": invented.memo,
        });
        net.fault(place, &json!({ "lie": lie }));
        net.setup.ledger.produce(40);
        until("the disagreement to be seen", || (net.serve.api.get("/readyz").send().status == 503).then_some(()));
        assert_eq!(net.shop.payment(&invented.id)["status"], "pending");
        net.clear_faults();
        net.pays(&net.setup.ledger);
        assert_eq!(net.shop.payment(&invented.id)["status"], "pending");
    }
}

fn a_recovered_node_is_healthy_at_every_position() {
    let net = Net::start(3, &[]);
    for place in 0..3 {
        for (fault, condition) in [
            (json!({ "disconnected": true }), "failing"),
            (json!({ "stalled": true }), "stale"),
            (json!({ "httpStatus": 429, "retryAfterSeconds": 2 }), "rate_limited"),
        ] {
            net.fault(place, &fault);
            net.until_condition(place, condition);
            net.clear_faults();
            net.until_condition(place, "ok");
        }
    }
    // Each change is one log line, however often the node was called in between.
    let log = net.serve.process.log();
    let count = |words: &str| log.lines().filter(|line| line.contains(words)).count();
    let lines = count("is ok again");
    assert!((3..=12).contains(&lines), "{lines} lines of nodes that are well again:\n{log}");
}

fn a_price_invented_by_one_node_is_never_used() {
    let net = Net::start(3, &["--set=ledger.rate_interval_seconds=1"]);
    let cents = |net: &Net| {
        ["HIVE", "HBD"].map(|currency| {
            let mut wanted = order();
            wanted["currency"] = json!(currency);
            let opened = net.shop.open_with(&wanted);
            net.shop.payment(&opened.id)["usdEquivalentCents"].clone()
        })
    };
    let fair = until("a price to be read", || {
        let mut wanted = order();
        wanted["currency"] = json!("HIVE");
        let response = net.shop.post("/api/public/payments", &wanted).send();
        (response.status == 201).then(|| cents(&net))
    });
    assert_eq!(fair, [json!(38), json!(150)], "1.500 HIVE and 1.500 HBD");
    for place in 0..3 {
        net.fault(place, &json!({ "lie": { "kind": "price", "base": "9.000 HBD", "quote": "1.000 HIVE" } }));
        net.until_condition(place, "disagreeing");
        assert_eq!(cents(&net), fair);
        net.clear_faults();
    }
}

fn a_stalled_chain_is_detected() {
    let net = Net::start(3, &[]);
    net.setup.ledger.auto_produce(false);
    until("the head to be old", || {
        let ready = net.serve.api.get("/readyz").send().json();
        (ready["headAgeSeconds"].as_u64()? >= 3).then_some(())
    });
    assert!((0..3).all(|place| net.condition(place) != "stale"), "all nodes are alike: none is stale");
    net.setup.ledger.auto_produce(true);
    net.pays(&net.setup.ledger);
    // The next block ends the alarm.
    pause(Duration::from_millis(300));
    until("the head to be new", || {
        let ready = net.serve.api.get("/readyz").send().json();
        (ready["headAgeSeconds"].as_u64()? < 3).then_some(())
    });
}
