//! kill -9 in a loop under load: no acknowledged write is lost, nothing happens twice, and every webhook is delivered.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    thread::JoinHandle,
    time::Duration,
};

use serde_json::{Value, json};
use simulations::random::Random;

use super::{
    client::{Client, look},
    environment::Environment,
    final_check::{Chain, Moved, Sums, differs, read_chain, read_events, untold},
    model::Model,
    print_progress, seconds,
    settings::SettingsClient,
    switch,
};
use crate::harness::{
    Api, Ledger, LedgerProcess, Process, Proxy, Receiver, Serve, Shop, Stopwatch, TIMEOUT, background, folder, pause,
    until, until_ready,
};

crate::tests!(repeated_kills_lose_no_acknowledged_write);

/// Clients that create payments, each with its own shop; the settings client has one more.
const CLIENTS: usize = 4;
/// The endpoint rejects the first attempt of every n-th event.
const FAIL_EVERY: usize = 7;
/// Responses that a kill may follow immediately.
const RESPONSES: [&str; 5] = [
    "payments acknowledged",
    "cancels acknowledged",
    "settlements acknowledged",
    "settings acknowledged",
    "keys acknowledged",
];
/// Maximum total shift of the ledger's clock: signed transactions must not expire too far ahead of a gateway that has
/// just started and has not seen the ledger's head.
const MOST_ADVANCES: u64 = 20;

/// A running campaign.
pub(super) struct Campaign {
    seed: u64,
    pub(super) random: Random,
    pub(super) environment: Arc<Environment>,
    pub(super) model: Arc<Model>,
    receivers: Vec<Receiver>,
    proxy: Proxy,
    ledger: LedgerProcess,
    chain: PathBuf,
    data: PathBuf,
    serve: Process,
    /// Cursors and events of each shop, which are read on after each restart.
    events: Vec<(String, Vec<Value>)>,
    /// Webhooks of each shop whose signatures were verified.
    checked: Vec<usize>,
    /// Payments that were compared with the gateway's records once since their creation.
    looked: usize,
    /// The time of the gateway's last start, until it is ready.
    started: Option<Stopwatch>,
    ready_after: Vec<Duration>,
    advances: u64,
    kills: BTreeMap<&'static str, u64>,
}

fn repeated_kills_lose_no_acknowledged_write() {
    let (kills, seed) = (switch("HIVETILL_KILLS", 6), switch("HIVETILL_SEED", 1));
    print_progress(&format!(
        "reliability: {kills} kills; HIVETILL_KILLS={kills} HIVETILL_SEED={seed} does the same again"
    ));
    let watch = Stopwatch::start();
    let mut campaign = Campaign::begin(seed, folder("reliability").join("data"));
    let clients = campaign.clients();
    let settings_client = campaign.settings_client();
    for kill in 1..=kills {
        campaign.round(kill);
        if kill.is_multiple_of(10) {
            let violations = campaign.environment.violations().len();
            print_progress(&format!(
                "reliability: {kill} of {kills} kills, {} payments, {violations} violations, {:?}",
                campaign.model.len(),
                watch.elapsed()
            ));
        }
        if !campaign.environment.violations().is_empty() {
            break;
        }
    }
    campaign.finish(clients, settings_client, watch);
}

/// The gateway's command line, which never changes.
fn arguments(data: &Path, proxy: &Proxy) -> Vec<String> {
    let more = ["--set=keys.roll=true", "--set=ledger.request_timeout_ms=2000"];
    Serve::args(data, &Ledger::new(&proxy.url(), ""), &more)
}

impl Campaign {
    /// Starts a campaign whose gateway keeps its data in a directory.
    pub(super) fn begin(seed: u64, data: PathBuf) -> Self {
        let chain = folder("chain").join("chain");
        let ledger = LedgerProcess::start(&chain, "127.0.0.1:0");
        // The gateway's node keeps its address, wherever the ledger listens after a restart.
        let proxy = Proxy::before(&ledger.ledger.rpc);
        let mut serve = Process::start(&arguments(&data, &proxy));
        let api = Api::new(&format!("http://{}", serve.log_after("listening on ")));
        until_ready(&api);
        let shops: Vec<Shop> = (0..=CLIENTS).map(|_| Shop::open(&api, &ledger.ledger)).collect();
        let receivers: Vec<Receiver> = shops.iter().map(|_| Receiver::start()).collect();
        for (shop, receiver) in shops.iter().zip(&receivers) {
            shop.set_webhook(receiver);
            receiver.fail_every(FAIL_EVERY);
        }
        let environment = Arc::new(Environment::new(&ledger.ledger));
        environment.move_gateway(Some(&api));
        let events = shops.iter().map(|_| (String::new(), Vec::new())).collect();
        Self {
            seed,
            random: Random::new(seed),
            environment,
            checked: vec![0; shops.len()],
            model: Arc::new(Model::new(shops)),
            receivers,
            proxy,
            ledger,
            chain,
            data,
            serve,
            events,
            looked: 0,
            started: None,
            ready_after: Vec::new(),
            advances: 0,
            kills: BTreeMap::new(),
        }
    }

    pub(super) fn client(&self, shop: usize) -> Client {
        let random = self.random.fork(&format!("client {shop}"));
        Client::new(&self.environment, &self.model, random, shop, self.ledger.ledger.account("payer"))
    }

    pub(super) fn clients(&self) -> Vec<JoinHandle<Client>> {
        let start = |shop| {
            let client = self.client(shop);
            background(move || client.run())
        };
        (0..CLIENTS).map(start).collect()
    }

    pub(super) fn settings_client(&self) -> JoinHandle<SettingsClient> {
        let settings_client = SettingsClient::new(self.client(CLIENTS), &self.receivers[CLIENTS]);
        background(move || settings_client.run())
    }

    /// One kill: of the gateway, of its ledger, or of both, at a drawn moment.
    fn round(&mut self, kill: u64) {
        let is_early = kill % 3 == 2;
        let what = match (kill % 7, self.random.below(20)) {
            (3, _) | (_, 0) => "both",
            (5, _) | (_, 1) => "the ledger",
            _ => "the gateway",
        };
        if is_early {
            // During the start: before the store is open, before it listens, before it has seen the ledger.
            pause(Duration::from_millis(self.random.below(150)));
        } else {
            self.until_up();
            self.audit();
            if kill % 5 == 4 && self.advances < MOST_ADVANCES {
                self.advances += 1;
                self.ledger.ledger.advance(61);
            }
            if self.random.below(2) == 0 {
                // Right after a response: a write that was acknowledged too early is not on disk yet.
                let response = RESPONSES[self.random.index(RESPONSES.len())];
                self.environment.until_next(response);
            } else {
                pause(Duration::from_millis(self.random.below(900)));
            }
        }
        *self.kills.entry(what).or_default() += 1;
        *self.kills.entry("while it started").or_default() += u64::from(is_early);
        if what != "the gateway" {
            self.ledger.process.kill();
        }
        if what != "the ledger" || is_early {
            self.kill_gateway();
        }
        if what != "the gateway" {
            pause(Duration::from_millis(self.random.below(400)));
            self.ledger = LedgerProcess::start(&self.chain, "127.0.0.1:0");
            self.environment.move_ledger(&self.ledger.ledger);
            self.proxy.set_upstream(&self.ledger.ledger.rpc);
        }
        if what != "the ledger" || is_early {
            self.start();
        }
    }

    pub(super) fn arguments(&self) -> Vec<String> {
        arguments(&self.data, &self.proxy)
    }

    /// Starts the gateway on the data of the killed one.
    pub(super) fn start(&mut self) {
        self.serve = Process::start(&self.arguments());
        self.started = Some(Stopwatch::start());
    }

    /// Waits until the gateway exits by itself, as expected.
    pub(super) fn ended(&mut self, code: i32, words: &str) {
        let status = self.serve.wait();
        self.environment.move_gateway(None);
        let log = self.serve.log();
        if status.code() != Some(code) || !log.contains(words) || log.contains("panicked") {
            self.environment
                .record_violation(format!("it exited with {status}, expected {code} and {words:?}:\n{log}"));
        }
    }

    /// Runs a function while the gateway is stopped.
    pub(super) fn while_halted(&self, act: impl FnOnce()) {
        self.serve.while_halted(act);
    }

    pub(super) fn kill_gateway(&mut self) {
        if let Some(status) = self.serve.has_ended() {
            self.environment.record_violation(format!("the gateway ended by itself: {status}\n{}", self.serve.log()));
        }
        self.serve.kill();
        self.environment.move_gateway(None);
        self.read_log();
    }

    fn read_log(&self) {
        for line in self.serve.log().lines().filter(|line| line.contains("panicked") || line.contains("ERROR")) {
            self.environment.record_violation(format!("the gateway's log contains: {line}"));
        }
    }

    /// Waits until the gateway follows the ledger, and records the time since its start.
    pub(super) fn until_up(&mut self) {
        let api = Api::new(&format!("http://{}", self.serve.log_after("listening on ")));
        self.environment.move_gateway(Some(&api));
        until_ready(&api);
        self.ready_after.extend(self.started.take().map(Stopwatch::elapsed));
    }

    /// Compares the gateway's records with what is new since the last time, and with a sample of what is old.
    pub(super) fn audit(&mut self) {
        let new = self.model.since(self.looked);
        self.looked += new.len().saturating_sub(20);
        let old: Vec<_> = (0..15).filter_map(|_| self.model.any(&mut self.random)).collect();
        for payment in new.iter().chain(&old) {
            look(&self.environment, &self.model, payment);
        }
        for shop in 0..self.model.shops.len() {
            self.read_events(shop);
            self.check_signatures(shop, None);
        }
    }

    fn read_events(&mut self, shop: usize) {
        let (cursor, events) = &mut self.events[shop];
        events.extend(read_events(&self.environment, &self.model.shops[shop], cursor));
    }

    /// Verifies signatures while they are fresh: a receiver rejects old ones.
    fn check_signatures(&mut self, shop: usize, settings_client: Option<&SettingsClient>) {
        if shop == CLIENTS && settings_client.is_none() {
            return;
        }
        let hooks = self.receivers[shop].hooks_since(self.checked[shop]);
        self.checked[shop] += hooks.len();
        let secret = &self.model.shops[shop].secret;
        for hook in &hooks {
            if !settings_client
                .map_or_else(|| hook.is_signed_by(secret), |settings_client| settings_client.is_signed(hook))
            {
                self.environment.record_violation(format!("a webhook has no valid signature: {:?}", hook.headers));
            }
        }
    }

    /// Stops the load and compares everything.
    pub(super) fn finish(
        mut self,
        clients: Vec<JoinHandle<Client>>,
        settings_client: JoinHandle<SettingsClient>,
        watch: Stopwatch,
    ) {
        if !self.environment.violations().is_empty() {
            // The following steps would wait in vain.
            self.environment.end();
            return self.judge();
        }
        self.until_up();
        self.environment.end();
        let clients: Vec<Client> = clients.into_iter().map(|client| client.join().expect("no panic")).collect();
        let settings_client = settings_client.join().expect("no panic");
        settings_client.check();
        self.settle(clients, &settings_client);
        self.report(&settings_client, watch);
    }

    /// Waits until everything is final, and compares it with the ledger's own blocks.
    fn settle(&mut self, mut clients: Vec<Client>, settings_client: &SettingsClient) {
        // Every broadcast transfer is in a block, and the block is irreversible.
        self.ledger.ledger.produce(10);
        self.ledger.ledger.advance(61);
        self.until_scanned();
        for client in &mut clients {
            for _ in 0..3 {
                client.pay_overdue();
            }
        }
        self.ledger.ledger.produce(10);
        self.until_scanned();
        // Nothing changes any more; the totals are compared.
        let (chain, now) = (read_chain(&self.ledger.ledger), self.chain_time());
        let mut open = self.model.since(0);
        let mut sums = Sums::default();
        let mut late = Vec::new();
        let watch = Stopwatch::start();
        while !open.is_empty() && watch.elapsed() < TIMEOUT * 3 {
            late.clear();
            open.retain(|payment| {
                let differs = differs(&self.environment, &self.model, &chain, &now, payment, &mut sums);
                late.extend(differs.clone());
                differs.is_some()
            });
            if !open.is_empty() {
                pause(Duration::from_millis(200));
            }
        }
        late.iter().for_each(|late| self.environment.record_violation(late));
        let on_ledger: u64 = self.on_ledger(&chain);
        if late.is_empty() && sums.units != on_ledger {
            self.environment
                .record_violation(format!("records hold {} units, the ledger moved {on_ledger}", sums.units));
        }
        print_progress(&format!(
            "reliability: {:?}; {} units in records and on the ledger",
            sums.by_status, sums.units
        ));
        for shop in 0..self.model.shops.len() {
            self.until_notified(shop);
            self.check_signatures(shop, (shop == CLIENTS).then_some(settings_client));
            self.count_payments(shop);
        }
    }

    /// Sums the webhooks of the shops.
    fn on_ledger(&self, chain: &Chain) -> u64 {
        let ids = self.model.since(0).into_iter().map(|payment| format!("pos-{}", payment.id));
        let known = ids.filter(|memo| chain.contains_key(memo)).count();
        let named = chain.keys().filter(|memo| memo.starts_with("pos-")).count();
        if known != named {
            self.environment.record_violation(format!("{named} payments were paid, {known} of them acknowledged"));
        }
        let ours = chain.iter().filter(|(memo, _)| memo.starts_with("pos-"));
        ours.flat_map(|(_, moved)| moved).map(Moved::units).sum()
    }

    fn chain_time(&self) -> String {
        let head = self.ledger.ledger.order("status", &json!({}))["head"].clone();
        seconds(&head["time"]).to_owned()
    }

    fn until_scanned(&mut self) {
        let head = self.ledger.ledger.order("status", &json!({}))["head"]["number"].as_u64().expect("a number");
        let api = Api::new(&format!("http://{}", self.serve.log_after("listening on ")));
        until("the scanner to catch up", || {
            let ready = api.get("/readyz").try_send().ok()?.json();
            (ready["scannedBlock"].as_u64()? >= head).then_some(())
        });
    }

    /// Waits until every event was delivered, and every delivery has its event.
    fn until_notified(&mut self, shop: usize) {
        let ends: BTreeMap<String, String> = self
            .model
            .since(0)
            .into_iter()
            .filter(|payment| payment.shop == shop)
            .filter_map(|payment| Some((payment.id, payment.end?[0].as_str()?.to_owned())))
            .collect();
        let watch = Stopwatch::start();
        loop {
            self.read_events(shop);
            let (events, hooks) = (&self.events[shop].1, self.receivers[shop].hooks());
            let missing = untold(&self.model.shops[shop], &ends, events, &hooks);
            if missing.is_empty() {
                break;
            }
            if watch.elapsed() > TIMEOUT {
                missing.iter().take(10).for_each(|missing| self.environment.record_violation(missing));
                break;
            }
            pause(Duration::from_millis(200));
        }
        // Read in parts across restarts, and read at once: the same list.
        let whole = read_events(&self.environment, &self.model.shops[shop], &mut String::new());
        if whole != self.events[shop].1 {
            let read = self.events[shop].1.len();
            self.environment.record_violation(format!("{} events at once and {read} one after the other", whole.len()));
        }
    }

    /// Counts payments: one that no client knows was created twice by one key.
    fn count_payments(&self, shop: usize) {
        let key = &self.model.shops[shop].key;
        let Some(response) = self.environment.request(|api| api.get("/api/public/payments?limit=1").bearer(key)) else {
            return;
        };
        let (there, known) = (response.json()["pagination"]["total"].clone(), self.model.since(0));
        let known = known.iter().filter(|payment| payment.shop == shop).count();
        if there != known {
            self.environment.record_violation(format!("{known} payments were acknowledged and {there} are there"));
        }
    }

    fn report(&mut self, settings_client: &SettingsClient, watch: Stopwatch) {
        settings_client.check();
        let status = self.serve.stop();
        if !status.success() {
            self.environment.record_violation(format!("after SIGTERM it exited with {status}"));
        }
        self.read_log();
        let verified = Process::start(&["verify", "--data", self.data.to_str().expect("a path")]).finish();
        if !verified.success {
            self.environment.record_violation(format!("verify: {verified:?}"));
        }
        let hooks: usize = self.receivers.iter().map(|receiver| receiver.hooks().len()).sum();
        let events: usize = self.events.iter().map(|(_, events)| events.len()).sum();
        let mut ready: Vec<Duration> = self.ready_after.iter().copied().filter(|took| *took != Duration::MAX).collect();
        ready.sort();
        let at = |place: usize| ready.get(place).copied().unwrap_or_default();
        let violations = self.environment.violations();
        print_progress(&format!(
            "reliability: kills {:?}; {:?}; events {events}, webhooks {hooks} ({} more than events); restart to ready \
             p50 {:?}, max {:?} of {}; violations {}; {:?}; seed {}",
            self.kills,
            self.environment.counts(),
            hooks - events.min(hooks),
            at(ready.len() / 2),
            at(ready.len().saturating_sub(1)),
            ready.len(),
            violations.len(),
            watch.elapsed(),
            self.seed,
        ));
        self.judge();
    }

    /// Fails if there was a violation.
    fn judge(&self) {
        let violations = self.environment.violations();
        if let Some(first) = violations.first() {
            let seed = self.seed;
            panic!("{} violations; HIVETILL_SEED={seed} draws the same again; the first: {first}", violations.len());
        }
    }
}
