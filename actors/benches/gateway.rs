//! What an engine costs: durable creations through the handle, sessions in memory, expiries at once, a million sessions.
//!
//! `cargo bench -p actors --bench gateway [-- creations|memory|expiry|million]`; creations are medians of five runs, a
//! fresh store each.

#![expect(clippy::disallowed_methods, clippy::float_arithmetic, clippy::print_stdout, reason = "a benchmark measures")]

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use actors::{
    Engine, Environment, Settings, Tree,
    environment::{
        Account, Identity, NoProbe, Node, NodeError, NodeResponse, TxStatus, WebhookRequest, WebhookResponse,
        WebhookTransport,
    },
    system::{SystemClock, SystemEntropy},
};
use engine::{
    account::AccountName,
    fields::Metadata,
    hive::{Authority, ChainId},
    ledger::{Block, BlockId, Head, Transfer, TxId, VirtualOperations},
    merchant::{Merchant, Registration},
    money::{Currency, HbdPrice, HivePrice, Money},
    payment::Draft,
    time::Timestamp,
    webhook::Outcome,
};
use futures_util::future::BoxFuture;
use storage::{EmbeddedStore, Options};

/// The binary's own.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A node of a chain with one block, which may say that a later one is irreversible.
struct Still {
    now: std::sync::Mutex<Timestamp>,
}

impl Still {
    fn blocks_now(&self) -> [Block; 2] {
        let id = |number: u32| {
            let mut id = [0; 20];
            id[..4].copy_from_slice(&number.to_be_bytes());
            BlockId(id)
        };
        let block = |number, time| Block {
            id: id(number),
            previous: id(number - 1),
            time,
            transfers: Vec::new(),
            escrow_releases: Vec::new(),
            unknown_operations: std::collections::BTreeMap::new(),
        };
        [block(1, Timestamp::from_seconds(1)), block(2, *self.now.lock().unwrap())]
    }

    fn height(&self) -> usize {
        if *self.now.lock().unwrap() == Timestamp::EPOCH { 1 } else { 2 }
    }
}

impl Node for Still {
    fn name(&self) -> &str {
        "still"
    }
    fn identity(&self) -> NodeResponse<'_, Identity> {
        Box::pin(async { Ok(Identity { chain_id: ChainId::MAINNET, version: String::new(), is_development: false }) })
    }
    fn head(&self) -> NodeResponse<'_, Head> {
        Box::pin(async {
            let block = &self.blocks_now()[self.height() - 1];
            Ok(Head { block_id: block.id, time: block.time, irreversible_num: block.number() })
        })
    }
    fn blocks(&self, from: u32, count: u32) -> NodeResponse<'_, Vec<Block>> {
        Box::pin(async move {
            let blocks = self.blocks_now().into_iter().take(self.height());
            Ok(blocks.filter(|block| (from..from + count).contains(&block.number())).collect())
        })
    }
    fn history(&self, _account: AccountName, _span: (Timestamp, Timestamp)) -> NodeResponse<'_, Vec<Transfer>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn virtual_operations(&self, _block_num: u32) -> NodeResponse<'_, Option<VirtualOperations>> {
        Box::pin(async { Ok(Some(VirtualOperations::default())) })
    }

    fn accounts(&self, names: Vec<AccountName>) -> NodeResponse<'_, Vec<Account>> {
        let account =
            |name| Account { name, active: Authority::default(), balances: [Money::new(0, Currency::Hive); 2] };
        Box::pin(async move { Ok(names.into_iter().map(account).collect()) })
    }
    fn find_transaction(&self, _: TxId, _: Timestamp) -> NodeResponse<'_, TxStatus> {
        Box::pin(async { Ok(TxStatus::Unknown) })
    }
    fn broadcast(&self, _: String) -> NodeResponse<'_, ()> {
        Box::pin(async { Err(NodeError::Timeout) })
    }
    fn price(&self) -> NodeResponse<'_, Option<HivePrice>> {
        Box::pin(async { Ok(None) })
    }
    fn hbd_price(&self) -> NodeResponse<'_, Option<HbdPrice>> {
        Box::pin(async { Ok(None) })
    }
}

struct Nowhere;

impl WebhookTransport for Nowhere {
    fn post(&self, _: WebhookRequest) -> BoxFuture<'_, WebhookResponse> {
        Box::pin(async { WebhookResponse { outcome: Outcome::Connect, snippet: String::new() } })
    }
}

struct Gateway {
    tree: Tree,
    node: Arc<Still>,
    store: Arc<EmbeddedStore>,
    merchant: Merchant,
}

async fn engine(data: &Path, max_active: usize) -> (Tree, Arc<Still>, Arc<EmbeddedStore>) {
    let node = Arc::new(Still { now: std::sync::Mutex::new(Timestamp::EPOCH) });
    let store = Arc::new(EmbeddedStore::open(data, Options::default()).expect("a store"));
    let env = Environment {
        clock: Arc::new(SystemClock),
        entropy: Arc::new(SystemEntropy),
        store: Arc::clone(&store) as Arc<dyn storage::Store>,
        nodes: vec![Arc::clone(&node) as Arc<dyn Node>],
        webhooks: Arc::new(Nowhere),
        probe: Arc::new(NoProbe),
    };
    let settings = Settings { max_active, ..Settings::of(ChainId::MAINNET) };
    let tree = Tree::start(env, settings).await.expect("an engine");
    let engine = tree.engine();
    while !engine.operations.health().await.expect("health").is_following {
        tokio::task::yield_now().await;
    }
    (tree, node, store)
}

async fn gateway(data: &Path, max_active: usize) -> Gateway {
    let (tree, node, store) = engine(data, max_active).await;
    let registration = Registration::check("Mugs", "blue.mugs", None).expect("valid");
    let merchant = tree.engine().merchants.register(registration, false).await.expect("registered").merchant;
    Gateway { tree, node, store, merchant }
}

/// A session that lives for half an hour.
fn draft() -> Draft {
    living(None)
}

fn living(lifetime: Option<Duration>) -> Draft {
    Draft {
        amount: Money::new(1_000, Currency::Hbd),
        description: "A blue mug, hand made".to_owned(),
        metadata: Metadata::new(),
        redirect_url: None,
        cancel_url: None,
        lifetime,
    }
}

/// Opens `count` sessions from `callers` at once; returns the seconds it took.
async fn open(engine: &Engine, merchant: &Merchant, callers: usize, count: usize) -> f64 {
    open_like(engine, merchant, callers, count, &draft()).await
}

async fn open_like(engine: &Engine, merchant: &Merchant, callers: usize, count: usize, draft: &Draft) -> f64 {
    let merchant = Arc::new(merchant.clone());
    let begin = Instant::now();
    let each = count / callers;
    let work: Vec<_> = (0..callers)
        .map(|_| {
            let (engine, merchant, draft) = (engine.clone(), Arc::clone(&merchant), draft.clone());
            tokio::spawn(async move {
                for _ in 0..each {
                    engine.payments.open(&merchant, draft.clone(), None).await.expect("opened");
                }
            })
        })
        .collect();
    for work in work {
        work.await.expect("no panic");
    }
    begin.elapsed().as_secs_f64()
}

/// CPU seconds of this process, user and system, and resident bytes.
fn usage() -> (f64, f64) {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<f64> =
        stat.rsplit(')').next().unwrap_or("").split_whitespace().map(|f| f.parse().unwrap_or(0.0)).collect();
    let cpu = (fields.get(11).unwrap_or(&0.0) + fields.get(12).unwrap_or(&0.0)) / 100.0;
    (cpu, fields.get(21).unwrap_or(&0.0) * 4096.0)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime")
}

fn creations() {
    println!("durable creations through the handle (median of 5, a fresh store each)");
    println!("{:>8} {:>12} {:>16}", "callers", "per second", "CPU us/creation");
    for (callers, count) in [(1, 4_000), (10, 20_000), (100, 60_000), (1_000, 100_000)] {
        let mut rates = Vec::new();
        let mut cpus = Vec::new();
        for _ in 0..5 {
            let data = tempfile::tempdir().expect("a folder");
            runtime().block_on(async {
                let gateway = gateway(data.path(), 5_000).await;
                let before = usage().0;
                let seconds = open(&gateway.tree.engine(), &gateway.merchant, callers, count).await;
                rates.push(count as f64 / seconds);
                cpus.push((usage().0 - before) / count as f64 * 1e6);
                gateway.tree.stop().await;
                gateway.store.close().await;
            });
        }
        println!("{callers:>8} {:>12.0} {:>16.1}", median(rates), median(cpus));
    }
}

fn memory() {
    const SESSIONS: usize = 200_000;
    for (what, max_active) in [("active", SESSIONS), ("passive", 100)] {
        let data = tempfile::tempdir().expect("a folder");
        runtime().block_on(async {
            let gateway = gateway(data.path(), max_active).await;
            // What is touched once, such as the store's cache, is not the sessions'.
            open(&gateway.tree.engine(), &gateway.merchant, 100, 20_000).await;
            let before = usage().1;
            open(&gateway.tree.engine(), &gateway.merchant, 100, SESSIONS - 20_000).await;
            let active = gateway.tree.engine().operations.health().await.expect("health").active;
            let bytes = (usage().1 - before) / (SESSIONS - 20_000) as f64;
            println!(
                "{what}: {bytes:.0} bytes resident a session ({active} of {SESSIONS} active), cache of the store included"
            );
            gateway.tree.stop().await;
            gateway.store.close().await;
        });
    }
}

fn expiry() {
    const SESSIONS: usize = 100_000;
    let data = tempfile::tempdir().expect("a folder");
    runtime().block_on(async {
        let gateway = gateway(data.path(), 5_000).await;
        open(&gateway.tree.engine(), &gateway.merchant, 100, SESSIONS).await;
        let seconds = expire(&gateway, SESSIONS).await;
        println!("{SESSIONS} expiries at once: {seconds:.1} s until all are durable");
        gateway.tree.stop().await;
        gateway.store.close().await;
    });
}

/// Lets a block come by which so many sessions expire; returns the seconds until the last of them is durable.
async fn expire(gateway: &Gateway, sessions: usize) -> f64 {
    let later = gateway.tree.engine().now() + Duration::from_secs(10_000);
    let begin = Instant::now();
    *gateway.node.now.lock().unwrap() = later;
    let mut query = storage::PaymentQuery::all(gateway.merchant.id, 1);
    query.states = vec![engine::payment::State::SystemCancelled];
    while gateway.tree.engine().payments.list(query.clone()).await.expect("a list").total < sessions as u64 {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    begin.elapsed().as_secs_f64()
}

/// A million open sessions: what creating costs among them, what a start costs, and how soon a tenth of them expires.
fn million() {
    const LASTING: usize = 900_000;
    const EXPIRING: usize = 100_000;
    // Enough for several checkpoints: what an empty store takes before its first says nothing about creating.
    const SAMPLE: usize = 150_000;
    let data = tempfile::tempdir().expect("a folder");
    let file_bytes = || {
        let files = std::fs::read_dir(data.path()).expect("a folder").flatten();
        files.map(|file| file.metadata().map_or(0, |about| about.len())).sum::<u64>()
    };
    let days = living(Some(Duration::from_secs(86_400)));
    runtime().block_on(async {
        let gateway = gateway(data.path(), 5_000).await;
        let engine = gateway.tree.engine();
        let empty = open_like(&engine, &gateway.merchant, 100, SAMPLE, &days).await;
        let rest = open_like(&engine, &gateway.merchant, 100, LASTING - SAMPLE, &days).await;
        open(&engine, &gateway.merchant, 100, EXPIRING).await;
        let full = open_like(&engine, &gateway.merchant, 100, SAMPLE, &days).await;
        let rate = |count: usize, seconds: f64| count as f64 / seconds;
        println!(
            "creations a second, 100 callers: {:.0} in an empty store, {:.0} on the way, {:.0} in one of a million ({:.0} %)",
            rate(SAMPLE, empty),
            rate(LASTING - SAMPLE, rest),
            rate(SAMPLE, full),
            100.0 * empty / full
        );
        println!("the store: {} MB", file_bytes() / 1_000_000);
        gateway.tree.stop().await;
        gateway.store.close().await;
    });
    let begin = Instant::now();
    runtime().block_on(async {
        let gateway = reopened(data.path()).await;
        println!(
            "a start with a million open sessions: {:.2} s until the ledger is followed",
            begin.elapsed().as_secs_f64()
        );
        let seconds = expire(&gateway, EXPIRING).await;
        println!("{EXPIRING} of a million sessions expire at once: {seconds:.1} s until all are durable");
        gateway.tree.stop().await;
        gateway.store.close().await;
    });
}

/// The engine over a store that has its merchant already.
async fn reopened(data: &Path) -> Gateway {
    let (tree, node, store) = engine(data, 5_000).await;
    let query = storage::MerchantQuery::all(1);
    let found = tree.engine().merchants.list(query).await.expect("readable").items.remove(0);
    Gateway { tree, node, store, merchant: Arc::unwrap_or_clone(found.merchant) }
}

fn main() {
    let wanted = std::env::args().nth(1).filter(|arg| !arg.starts_with('-'));
    let is_wanted = |name| wanted.as_deref().is_none_or(|wanted| wanted == name);
    if is_wanted("creations") {
        creations();
    }
    if is_wanted("memory") {
        memory();
    }
    if is_wanted("expiry") {
        expiry();
    }
    if is_wanted("million") {
        million();
    }
}
