//! How fast an engine that was away catches up: blocks of 60 transactions from a node that only has to send them.
//!
//! `cargo bench -p actors --bench scanner`; the median of five catch-ups. The scanner, the client of the node and the
//! store are the real ones; the node is a task of this process whose answers of 100 blocks are made beforehand. The
//! engine stores its cursor once for each range it reads.

#![expect(clippy::disallowed_methods, clippy::float_arithmetic, clippy::print_stdout, reason = "a benchmark measures")]

use std::{
    borrow::Cow,
    collections::BTreeMap,
    fmt::Write as _,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use actors::{
    Environment, Settings, Tree,
    environment::{NoProbe, Node, WebhookRequest, WebhookResponse, WebhookTransport},
    hive_rpc::HiveRpc,
    system::{SystemClock, SystemEntropy},
};
use engine::{
    hive::{Asset, ChainId, CustomJson, Form, Operation, Pack, PrivateKey, Symbol, Transaction, Transfer},
    time::Timestamp,
    webhook::Outcome,
};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use storage::{EmbeddedStore, Options, prelude::*};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

/// What the engine asks for at once.
const RANGE: u32 = 100;
const BLOCKS: u32 = 8_000;
const TRANSACTIONS: usize = 60;
const ROUNDS: usize = 5;
/// The block that the engine begins with.
const FIRST: u32 = 1;

struct Nowhere;

impl WebhookTransport for Nowhere {
    fn post(&self, _: WebhookRequest) -> BoxFuture<'_, WebhookResponse> {
        Box::pin(async { WebhookResponse { outcome: Outcome::Connect, snippet: String::new() } })
    }
}

/// A node with its answers ready.
struct Static {
    /// By the first block of the range.
    ranges: BTreeMap<u32, Vec<u8>>,
    irreversible: AtomicU32,
    block_bytes: AtomicU64,
}

fn main() {
    // Nobody else has chosen one in this process.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let node = Arc::new(Static::new());
    let mut rates = Vec::new();
    for _ in 0..ROUNDS {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
        rates.push(runtime.block_on(catch_up(&node)));
    }
    rates.sort_by(f64::total_cmp);
    println!(
        "catch-up over {BLOCKS} blocks of {TRANSACTIONS} transactions and {} kB, {RANGE} to a range and a commit: {:.0} \
         blocks a second (of {ROUNDS}: {:.0} to {:.0})",
        node.block_bytes.load(Ordering::Relaxed) / 1_000,
        rates[ROUNDS / 2],
        rates[0],
        rates[ROUNDS - 1]
    );
}

/// Starts an engine on the first block, lets the chain be far ahead, and returns the blocks read a second.
async fn catch_up(node: &Arc<Static>) -> f64 {
    node.irreversible.store(FIRST, Ordering::Relaxed);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    let server = tokio::spawn(serve(listener, Arc::clone(node)));
    let data = tempfile::tempdir().expect("a folder");
    let store = Arc::new(EmbeddedStore::open(data.path(), Options::default()).expect("a store"));
    let env = Environment {
        clock: Arc::new(SystemClock),
        entropy: Arc::new(SystemEntropy),
        store: Arc::clone(&store) as Arc<dyn storage::Store>,
        nodes: vec![Arc::new(HiveRpc::new(&url, Duration::from_secs(10)).expect("a client")) as Arc<dyn Node>],
        webhooks: Arc::new(Nowhere),
        probe: Arc::new(NoProbe),
    };
    let poll_interval = Duration::from_millis(10);
    let settings = Settings { poll_interval, ..Settings::of(ChainId::MAINNET) };
    let tree = Tree::start(env, settings).await.expect("an engine");
    let engine = tree.engine();
    while !engine.operations.health().await.expect("health").is_following {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    node.irreversible.store(FIRST + BLOCKS, Ordering::Relaxed);
    let begin = Instant::now();
    while engine.operations.health().await.expect("health").ledger.scanned_num < FIRST + BLOCKS {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let rate = f64::from(BLOCKS) / begin.elapsed().as_secs_f64();
    let cursor = store.cursor().await.expect("readable").expect("stored");
    assert_eq!(cursor.block_id.number(), FIRST + BLOCKS, "what was read is stored");
    tree.stop().await;
    store.close().await;
    server.abort();
    rate
}

impl Static {
    fn new() -> Self {
        let (transactions, ids) = transactions();
        let mut ranges = BTreeMap::new();
        let mut block_bytes = 0;
        for from in (FIRST + 1..=FIRST + BLOCKS).step_by(RANGE as usize) {
            let mut blocks = String::new();
            for number in from..from + RANGE {
                let _ = write!(
                    blocks,
                    r#"{}{{"previous":"{:08x}{:032x}","timestamp":"{}","witness":"w","transaction_merkle_root":"{:040x}","extensions":[],"witness_signature":"","transactions":[{transactions}],"block_id":"{number:08x}{:032x}","signing_key":"","transaction_ids":[{ids}]}}"#,
                    if number == from { "" } else { "," },
                    number - 1,
                    0,
                    time(number),
                    0,
                    0
                );
            }
            block_bytes = blocks.len() as u64 / u64::from(RANGE);
            ranges.insert(from, format!(r#"{{"blocks":[{blocks}]}}}}"#).into_bytes());
        }
        let block = format!(
            r#"{{"blocks":[{{"previous":"{:040x}","timestamp":"{}","witness":"w","transaction_merkle_root":"","extensions":[],"witness_signature":"","transactions":[],"block_id":"{FIRST:08x}{:032x}","signing_key":"","transaction_ids":[]}}]}}}}"#,
            0,
            time(FIRST),
            0
        );
        ranges.insert(FIRST, block.into_bytes());
        Self { ranges, irreversible: AtomicU32::new(FIRST), block_bytes: AtomicU64::new(block_bytes) }
    }

    /// Returns the beginning of an answer and the rest of it.
    fn respond(&self, request: &Value) -> (Vec<u8>, Cow<'_, [u8]>) {
        let result = format!(r#"{{"jsonrpc":"2.0","id":{},"result":"#, request["id"]).into_bytes();
        (result, self.result(request))
    }

    fn result(&self, request: &Value) -> Cow<'_, [u8]> {
        let irreversible = self.irreversible.load(Ordering::Relaxed);
        let result = match request["method"].as_str() {
            Some("block_api.get_block_range") => {
                let from = request["params"]["starting_block_num"].as_u64().and_then(|from| u32::try_from(from).ok());
                let range = from.and_then(|from| self.ranges.get(&from));
                return Cow::Borrowed(range.expect("the engine asks for whole ranges"));
            }
            Some("database_api.get_version") => {
                json!({"blockchain_version": "1.27.11", "chain_id": ChainId::MAINNET.to_string()})
            }
            Some("database_api.get_dynamic_global_properties") => json!({
                "head_block_id": format!("{irreversible:08x}{:032x}", 0),
                "time": time(irreversible),
                "last_irreversible_block_num": irreversible,
            }),
            // It keeps no history of accounts and knows no price, as many nodes.
            _ => return Cow::Borrowed(br#"null,"error":{"code":-32601,"message":"no such method"}}"#),
        };
        Cow::Owned(format!("{result}}}").into_bytes())
    }
}

fn time(number: u32) -> String {
    Timestamp::from_seconds(1_763_647_200 + u64::from(number) * 3).to_ledger()
}

/// One block's transactions and their ids: two transfers of six, to nobody of ours, the rest is talk.
fn transactions() -> (String, String) {
    let key = PrivateKey::from_bytes(&[7; 32]).expect("a key");
    let (mut texts, mut ids) = (Vec::new(), Vec::new());
    for each in 0..TRANSACTIONS {
        let operation = if each % 3 == 0 {
            let (from, to) = ("alice".to_owned(), "shop.payments".to_owned());
            let amount = Asset { units: 1_000 + each as i64, symbol: Symbol::Hbd };
            Operation::Transfer(Transfer { from, to, amount, memo: "thank you".to_owned() })
        } else {
            Operation::CustomJson(CustomJson {
                required_auths: std::collections::BTreeSet::new(),
                required_posting_auths: ["alice".to_owned()].into(),
                id: "application".to_owned(),
                json: format!(r#"{{"number":{each},"body":"{}"}}"#, "x".repeat(900)),
            })
        };
        let mut transaction = Transaction {
            ref_block_num: 1,
            ref_block_prefix: 2,
            expiration: Timestamp::from_seconds(1_800_000_000),
            operations: vec![operation],
            signatures: Vec::new(),
        };
        transaction.sign(ChainId::MAINNET, Pack::Legacy, &key);
        ids.push(format!("\"{}\"", transaction.id(Pack::Legacy)));
        texts.push(transaction.to_json(Form::Hf26));
    }
    (texts.join(","), ids.join(","))
}

async fn serve(listener: TcpListener, node: Arc<Static>) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(answer_all(stream, Arc::clone(&node)));
    }
}

/// Answers requests on one connection until the client hangs up.
async fn answer_all(mut stream: TcpStream, node: Arc<Static>) -> Option<()> {
    let mut taken = Vec::new();
    loop {
        let (end, length) = loop {
            if let Some(end) = taken.windows(4).position(|window| window == b"\r\n\r\n") {
                let head = std::str::from_utf8(&taken[..end]).ok()?.to_ascii_lowercase();
                let length: usize = head.split("content-length: ").nth(1)?.lines().next()?.parse().ok()?;
                if taken.len() >= end + 4 + length {
                    break (end + 4, length);
                }
            }
            if stream.read_buf(&mut taken).await.ok()? == 0 {
                return None;
            }
        };
        let request = serde_json::from_slice(&taken[end..end + length]).ok()?;
        let (begin, rest) = node.respond(&request);
        taken.drain(..end + length);
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            begin.len() + rest.len()
        );
        stream.write_all(&[head.as_bytes(), &begin].concat()).await.ok()?;
        stream.write_all(&rest).await.ok()?;
    }
}
