//! Facades that call several engines.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use crate::{
    events::{Stream, list, payments_of},
    harness::{Opened, Process, Response, Shop, background, order, pause, until},
};

use super::{
    cluster::{Cluster, Programs},
    fleet::{Fleet, TOKEN, database},
};

/// Clients that create payments at once.
const CLIENTS: usize = 4;

/// Clients that create payments under keys, each at once read again, until they are stopped.
pub(super) struct Load {
    is_over: Arc<AtomicBool>,
    shared: Arc<Acknowledged>,
    clients: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Acknowledged {
    /// The ids of payments by their keys.
    payments: Mutex<BTreeMap<String, String>>,
    /// Responses 503 with `Retry-After`.
    unavailable: AtomicUsize,
}

impl Load {
    pub(super) fn start(shop: &Shop) -> Self {
        Self::with_interval(shop, Duration::ZERO)
    }

    /// Starts clients that wait between their payments.
    pub(super) fn with_interval(shop: &Shop, interval: Duration) -> Self {
        let (is_over, shared) = (Arc::new(AtomicBool::new(false)), Arc::new(Acknowledged::default()));
        let client = |number: usize| {
            let (shop, is_over, shared) = (shop.clone(), Arc::clone(&is_over), Arc::clone(&shared));
            background(move || {
                let mut count = 0;
                while !is_over.load(Ordering::SeqCst) {
                    shared.create_and_read(&shop, &format!("order-{number}-{count}"));
                    count += 1;
                    pause(interval);
                }
            })
        };
        let clients = (0..CLIENTS).map(client).collect();
        Self { is_over, shared, clients }
    }

    /// Waits for `count` further acknowledged payments.
    #[track_caller]
    pub(super) fn until_further(&self, count: usize) {
        let wanted = self.count() + count;
        until("further payments", || (self.count() >= wanted).then_some(()));
    }

    /// Creates a payment under a key, as the clients do.
    #[track_caller]
    pub(super) fn create(&self, shop: &Shop, key: &str) -> Opened {
        Opened::of(&self.shared.create_and_read(shop, key))
    }

    fn count(&self) -> usize {
        self.shared.payments.lock().expect("no client panics with it").len()
    }

    /// Stops the clients. Returns the payments by their keys, and the number of responses 503.
    #[track_caller]
    pub(super) fn stop(self) -> (BTreeMap<String, String>, usize) {
        self.is_over.store(true, Ordering::SeqCst);
        for client in self.clients {
            client.join().expect("no client saw an error");
        }
        let payments = self.shared.payments.lock().expect("no client panics with it").clone();
        (payments, self.shared.unavailable.load(Ordering::SeqCst))
    }
}

impl Acknowledged {
    #[track_caller]
    fn create_and_read(&self, shop: &Shop, key: &str) -> serde_json::Value {
        let created = self
            .until_responded(201, || shop.post("/api/public/payments", &order()).header("idempotency-key", key).send());
        let id = created["id"].as_str().expect("an id").to_owned();
        let path = format!("/api/public/payments/{id}");
        let read = self.until_responded(200, || shop.get(&path).send());
        assert_eq!(read["id"], id.as_str());
        self.payments.lock().expect("no client panics with it").insert(key.to_owned(), id);
        created
    }

    /// Repeats a request after responses 503 with `Retry-After`, and accepts no other failure.
    fn until_responded(&self, status: u16, send: impl Fn() -> Response) -> serde_json::Value {
        until("a response", || {
            let response = send();
            if response.status == status {
                return Some(response.json());
            }
            assert!(response.status == 503 && response.header("retry-after").is_some(), "{response:?}");
            self.unavailable.fetch_add(1, Ordering::SeqCst);
            None
        })
    }
}

/// Kills each of two engines under load. No client notices, apart from a few responses 503.
pub(super) fn a_facade_outlives_its_engines(programs: &Programs) {
    let cluster = Cluster::start(programs, &[]);
    let mut fleet = Fleet::start(&database(&cluster), 2);
    let facade = fleet.facade(&["--set=limits.profile=off"]);
    let urls: Vec<String> = fleet.engines.iter().map(|engine| engine.url.clone()).collect();
    let shop = Shop::open(&facade.api, &fleet.ledger.ledger);
    // One stream at each engine.
    let mut streams = [(); 2].map(|()| Stream::open(&facade.api, &shop.key, "?after=", None));
    for stream in &mut streams {
        assert_eq!(stream.event().name, "ready");
    }
    for url in &urls {
        assert_eq!(facade.value("hivetill_facade_engine_streams", url), 1);
    }
    let load = Load::start(&shop);
    load.until_further(20);
    let mut cancelled = Vec::new();
    for (number, url) in urls.iter().enumerate() {
        fleet.engines[number].process.kill();
        load.until_further(20);
        facade.until_engine(url, false);
        let payment = shop.open_payment();
        shop.cancelled(&payment.id);
        cancelled.push(payment.id);
        fleet.restart(number);
        facade.until_engine(url, true);
        load.until_further(20);
    }
    let (acknowledged, unavailable) = load.stop();
    assert!(unavailable <= 2 * CLIENTS, "{unavailable} responses 503");
    for stream in &mut streams {
        let reported: Vec<String> =
            cancelled.iter().map(|_| stream.event()).map(|reported| reported.payment()).collect();
        assert_eq!(reported, cancelled, "without a gap and without a repetition");
    }
    assert_eq!(payments_of(&list(&shop, "")), cancelled);
    let stored = stored_ids(&shop);
    assert_eq!(stored.len(), acknowledged.len() + cancelled.len(), "one payment for each key");
    assert!(acknowledged.values().all(|id| stored.contains(id)), "nothing acknowledged is lost");
    let repeated: u64 = urls.iter().map(|url| facade.value("hivetill_facade_calls_repeated_total", url)).sum();
    assert!(repeated > 0, "a call was repeated at the other engine");
    let (engines, token) = (format!("--engine-url={}", urls.join(",")), format!("--set=grpc.token={TOKEN}"));
    let node = format!("--node={}", fleet.ledger.ledger.rpc.base);
    let checked = Process::start(&["doctor", "--network=dev", &engines, &token, &node]).finish();
    assert!(urls.iter().all(|url| checked.stdout.contains(&format!("{url}: healthy"))), "{checked:?}");
}

/// Returns the ids of all payments of a shop.
#[track_caller]
pub(super) fn stored_ids(shop: &Shop) -> std::collections::BTreeSet<String> {
    let (mut ids, mut page) = (std::collections::BTreeSet::new(), 1);
    loop {
        let listed = shop.get(&format!("/api/public/payments?limit=100&page={page}")).send().ok(200);
        let data = listed["data"].as_array().expect("a list");
        if data.is_empty() {
            return ids;
        }
        ids.extend(data.iter().map(|payment| payment["id"].as_str().expect("an id").to_owned()));
        page += 1;
    }
}
