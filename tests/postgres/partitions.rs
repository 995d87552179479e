//! Engines that are paused, or cut off from their database or their nodes, for longer than their lease.

use engine::hive::Pack;
use serde_json::{Value, json};

use crate::{
    harness::{Ledger, Opened, Receiver, Shop, Stopwatch, Wire, background, until},
    operations::metrics::Scrape,
    x402::{encode, json_of, nonce, transfers_with_memo, v1},
};

use super::{
    cluster::{Cluster, Programs},
    facades::{Load, stored_ids},
    fleet::{FacadeProcess, Fleet, database, migrated},
};

/// Payments that are opened before and during a failure.
const PAYMENTS: usize = 3;

/// A merchant behind a facade, its load, and payments whose webhooks are counted.
struct Journey {
    fleet: Fleet,
    facade: FacadeProcess,
    shop: Shop,
    receiver: Receiver,
    load: Load,
    opened: Vec<Opened>,
    /// Payments by x402.
    settled: Vec<Opened>,
}

/// An x402 payment that an engine has claimed, and whose broadcast is in no block.
struct Claimed {
    payment: Opened,
    shown: Value,
    /// The facade of this engine alone, through which it was submitted.
    _facade: FacadeProcess,
}

impl Journey {
    /// Submits an x402 payment to one engine, which claims it. The node accepts the broadcast and does not pass it on.
    #[track_caller]
    fn claim(&self, engine: usize) -> Claimed {
        let ledger = &self.fleet.ledger.ledger;
        let facade = FacadeProcess::start([self.fleet.engines[engine].url.clone()], &["--set=limits.profile=off"]);
        let payment = self.load.create(&self.shop, "claimed");
        let agent = ledger.account("agent");
        let signed = ledger.signed(&agent, &[(&self.shop.account.name, "1.500 HBD", &payment.memo)]);
        let (tx_id, shown) = (signed.id(Pack::Legacy).to_string(), v1(&json_of(&signed), &nonce()));
        ledger.order("node", &json!({ "lie": { "kind": "swallowBroadcasts" } }));
        let (api, path, header) = (facade.api.clone(), format!("/for/{}", payment.slug), encode(&shown));
        background(move || drop(api.get(&path).header("x-payment", &header).try_send()));
        self.shop.until(&payment.id, "claimed", |record| record["txId"] == tx_id.as_str());
        Claimed { payment, shown, _facade: facade }
    }

    /// Submits a claimed payment again, through the engine that is left. It waits for no lease and broadcasts the same transaction.
    #[track_caller]
    fn settle(&mut self, claimed: Claimed) {
        self.fleet.ledger.ledger.order("node", &json!({ "lie": null }));
        let (path, header) = (format!("/for/{}", claimed.payment.slug), encode(&claimed.shown));
        until("the receipt", || {
            let response = self.shop.api.get(&path).header("x-payment", &header).send();
            let is_pending = response.status == 402 && response.json()["error"] == "settlement_pending";
            assert!(matches!(response.status, 200 | 503) || is_pending, "{} {}", response.status, response.text());
            (response.status == 200).then_some(())
        });
        self.settled.push(claimed.payment);
    }

    #[track_caller]
    fn start(fleet: Fleet) -> Self {
        let facade = fleet.facade(&["--set=limits.profile=off"]);
        let shop = Shop::open(&facade.api, &fleet.ledger.ledger);
        let receiver = Receiver::start();
        shop.set_webhook(&receiver);
        let load = Load::start(&shop);
        load.until_further(8);
        let mut journey = Self { fleet, facade, shop, receiver, load, opened: Vec::new(), settled: Vec::new() };
        journey.open();
        journey
    }

    /// Opens payments, each under a key, as a shop should.
    #[track_caller]
    fn open(&mut self) {
        for _ in 0..PAYMENTS {
            self.opened.push(self.load.create(&self.shop, &format!("paid-{}", self.opened.len())));
        }
    }

    /// Pays all payments that were opened since the last time, each once.
    fn pay(&self, from: usize) {
        for payment in &self.opened[from..] {
            let account = &self.shop.account.name;
            let params = json!({ "from": "alice", "to": account, "amount": "1.500 HBD", "memo": payment.memo });
            self.fleet.ledger.ledger.order("transfer", &params);
        }
    }

    /// Checks that every payment completes, is credited once and reported once, and that nothing acknowledged is lost.
    #[track_caller]
    fn finish(self, clients_may_see: usize) {
        for payment in self.opened.iter().chain(&self.settled) {
            let record = self.shop.until_status(&payment.id, "completed");
            assert_eq!(record["transfers"].as_array().map(Vec::len), Some(1), "{record}");
            assert_eq!(record["exceptions"], json!([]), "{record}");
        }
        for payment in &self.settled {
            assert_eq!(self.shop.payment(&payment.id)["transfers"][0]["route"], "x402");
            assert_eq!(transfers_with_memo(&self.fleet.ledger.ledger, &payment.memo), 1, "one transfer on the chain");
        }
        let paid = self.opened.len() + self.settled.len();
        until("a webhook for each payment", || {
            let hooks = self.receiver.hooks();
            let completed = hooks.iter().filter(|hook| hook.json()["data"]["status"] == "completed");
            let ids: std::collections::BTreeSet<_> =
                completed.map(|hook| hook.header("webhook-id").to_owned()).collect();
            assert!(ids.len() <= paid, "an event for each completion: {ids:?}");
            (ids.len() == paid).then_some(())
        });
        let (acknowledged, unavailable) = self.load.stop();
        assert!(unavailable <= clients_may_see, "{unavailable} responses 503");
        let stored = stored_ids(&self.shop);
        assert!(acknowledged.values().all(|id| stored.contains(id)), "nothing acknowledged is lost");
        assert_eq!(stored.len(), acknowledged.len(), "one payment for each key");
    }
}

/// Returns whether an engine holds the duty of reading the chain.
pub(super) fn is_scanner(fleet: &Fleet, number: usize) -> bool {
    let held = Scrape::of(&fleet.engines[number].metrics);
    held.value("hivetill_duty_held{duty=\"scanner\"}") > 0.0
}

/// Waits until one of two engines reads the chain, and returns its number.
fn scanner(fleet: &Fleet) -> usize {
    until("a scanner", || (0..2).find(|number| is_scanner(fleet, *number)))
}

/// Waits until one of two engines holds the duty and the other one knows that it does not.
fn until_scanner_is(fleet: &Fleet, number: usize) {
    until("one scanner", || (is_scanner(fleet, number) && !is_scanner(fleet, 1 - number)).then_some(()));
}

/// Waits for longer than a lease.
fn outlast_the_lease() {
    let watch = Stopwatch::start();
    until("the end of a lease", || (watch.elapsed().as_secs() >= 8).then_some(()));
}

/// Pauses the engine that reads the chain.
pub(super) fn a_paused_engine_is_deposed(programs: &Programs) {
    let cluster = Cluster::start(programs, &[]);
    let mut journey = Journey::start(Fleet::start(&database(&cluster), 2));
    let paused = scanner(&journey.fleet);
    let other = 1 - paused;
    let url = journey.fleet.engines[paused].url.clone();
    let claimed = journey.claim(paused);
    journey.fleet.engines[paused].process.signal("STOP");
    journey.pay(0);
    journey.facade.until_engine(&url, false);
    journey.settle(claimed);
    journey.open();
    journey.pay(PAYMENTS);
    outlast_the_lease();
    until("the other engine to take over", || is_scanner(&journey.fleet, other).then_some(()));
    for payment in &journey.opened {
        journey.shop.until_status(&payment.id, "completed");
    }
    journey.fleet.engines[paused].process.signal("CONT");
    journey.facade.until_engine(&url, true);
    until("the end of its duties", || {
        let log = journey.fleet.engines[paused].process.log();
        log.contains("the lease expired and another engine ended it: duties lost").then_some(())
    });
    until_scanner_is(&journey.fleet, other);
    journey.finish(16);
}

/// Cuts the engine that reads the chain off from its database.
pub(super) fn an_engine_cut_off_from_the_database_is_replaced(programs: &Programs) {
    let cluster = Cluster::start(programs, &[]);
    let name = migrated(&cluster);
    let wire = Wire::to_socket(&cluster.data().with_file_name(".s.PGSQL.5432"));
    let direct = format!("--set=store.url={}", cluster.url(&name));
    let cut =
        format!("--set=store.url=postgres://{}@{}/{name}", super::cluster::USER, wire.address.replace('/', "%2F"));
    // The first engine begins to read the chain.
    let fleet = Fleet::of(&[&cut, &direct], |ledger| vec![ledger.clone(), ledger.clone()]);
    let mut journey = Journey::start(fleet);
    assert_eq!(scanner(&journey.fleet), 0);
    let url = journey.fleet.engines[0].url.clone();
    let claimed = journey.claim(0);
    wire.cut();
    journey.pay(0);
    journey.facade.until_engine(&url, false);
    journey.settle(claimed);
    journey.open();
    journey.pay(PAYMENTS);
    outlast_the_lease();
    until("the other engine to take over", || is_scanner(&journey.fleet, 1).then_some(()));
    for payment in &journey.opened {
        journey.shop.until_status(&payment.id, "completed");
    }
    wire.mend();
    journey.facade.until_engine(&url, true);
    until_scanner_is(&journey.fleet, 1);
    journey.finish(24);
}

/// Cuts the engine that reads the chain off from its only node.
pub(super) fn an_engine_cut_off_from_the_nodes_is_replaced(programs: &Programs) {
    let cluster = Cluster::start(programs, &[]);
    let store = database(&cluster);
    let mut wire = None;
    let fleet = Fleet::of(&[&store, &store], |ledger| {
        let laid = Wire::to(ledger.rpc.base.trim_start_matches("http://"));
        let cut = Ledger::new(&format!("http://{}", laid.address), &ledger.control.base);
        wire = Some(laid);
        vec![cut, ledger.clone()]
    });
    let wire = wire.expect("laid");
    let mut journey = Journey::start(fleet);
    assert_eq!(scanner(&journey.fleet), 0);
    let url = journey.fleet.engines[0].url.clone();
    let claimed = journey.claim(0);
    wire.cut();
    journey.pay(0);
    journey.facade.until_engine(&url, false);
    journey.settle(claimed);
    journey.open();
    journey.pay(PAYMENTS);
    until("the other engine to take over", || is_scanner(&journey.fleet, 1).then_some(()));
    for payment in &journey.opened {
        journey.shop.until_status(&payment.id, "completed");
    }
    wire.mend();
    journey.facade.until_engine(&url, true);
    journey.finish(16);
}
