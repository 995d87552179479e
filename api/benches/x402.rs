//! What an agent's payment costs the server: CPU for each verify and settle, beside one bare recovery.
//!
//! `cargo bench -p api --bench x402 [-- SECONDS]`; `HIVETILL_PROGRAM` names another binary to measure. The ledger is a process of its own, the server is pinned to one core
//! and the load to the other where `taskset` is there; 64 connections, warm accounts, `x402.finality=accepted`. Ends
//! with a thousand payers at once: how long each waits, and what the server holds.

#![expect(clippy::disallowed_methods, clippy::float_arithmetic, reason = "a benchmark measures")]

mod wire;

use std::{
    hint::black_box,
    net::SocketAddr,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use engine::{
    hive::{Asset, ChainId, Operation, Pack, PrivateKey, Symbol, Transaction, Transfer},
    ledger::BlockId,
    time::Timestamp,
};
use k256::ecdsa::{RecoveryId, VerifyingKey};
use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt, net::TcpStream};
use wire::{Server, once, read_response, report, request};

const CONNECTIONS: usize = 64;
const PAYERS: usize = 1_000;

fn main() {
    let seconds = std::env::args().filter_map(|argument| argument.parse().ok()).next().unwrap_or(10);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(measure(Duration::from_secs(seconds)));
}

async fn measure(time: Duration) {
    let data = tempfile::tempdir().expect("a folder");
    let ledger = Server::start(hivetill(None).args(["ledger", "--json", "--block-interval", "100ms"]).args([
        "--listen",
        "127.0.0.1:0",
        "--control-listen",
        "127.0.0.1:0",
    ]));
    let ledger_started: Value = serde_json::from_str(&ledger.first_line).expect("one line of JSON");
    let node = ledger_started["ledger"].as_str().expect("an address").to_owned();
    let node_address: SocketAddr = node.trim_start_matches("http://").parse().expect("an address");
    let wif = ledger_started["accounts"][0]["activeKey"].as_str().expect("a key");
    let key = PrivateKey::from_wif(wif).expect("a key");

    // The kernel picks a free port; it is let go of a moment before the server takes it.
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port").local_addr().expect("bound");
    let mut serve = hivetill(Some("0"));
    serve.args(["serve", "--init", "--network", "dev", "--node", &node, "--listen", &free.to_string()]);
    serve.args(["--data"]).arg(data.path());
    serve.args(["--set", "x402.finality=accepted", "--set", "ledger.poll_interval_ms=200", "--set", "log.level=warn"]);
    serve.args(["--set", "grpc.listen=127.0.0.1:0", "--set", "limits.profile=off"]);
    let mut serve = serve.spawn().expect("the program is there");
    wait_for(free).await;
    let merchant = once(
        free,
        &request("POST", "/api/public/merchants/register", "", r#"{"name":"Bench","hiveAccount":"shop.demo"}"#),
    )
    .await;
    let merchant: Value = serde_json::from_str(merchant.split("\r\n\r\n").nth(1).expect("a body")).expect("JSON");
    let api_key = merchant["apiKey"].as_str().expect("a key").to_owned();

    let recovery = bare_recovery(&key);
    report(&format!("one bare k256 recovery: {:.1} us", recovery * 1e6));
    let enough = usize::try_from(time.as_secs()).expect("short") * 4_000 + PAYERS;
    let payments = prepare(free, node_address, &api_key, &key, enough).await;
    let pid = serve.id();

    let verify: Vec<String> = payments.iter().take(256).map(|body| call("verify", body)).collect();
    let (verify_rate, verify_cpu) = load(free, pid, &verify, time, true).await;
    say("verify", verify_rate, verify_cpu, recovery);
    let (last, most) = payments.split_at(PAYERS);
    let settle: Vec<String> = most.iter().map(|body| call("settle", body)).collect();
    let (settle_rate, settle_cpu) = load(free, pid, &settle, time, false).await;
    say("settle", settle_rate, settle_cpu, recovery);

    let last: Vec<String> = last.iter().map(|body| call("settle", body)).collect();
    let mut latencies = at_once(free, last).await;
    latencies.sort_unstable();
    let at = |share: usize| latencies[(latencies.len() - 1) * share / 100].as_millis();
    report(&format!(
        "{PAYERS} payers at once: settle p50 {} ms, p90 {} ms, p99 {} ms, max {} ms; server holds {} MB",
        at(50),
        at(90),
        at(99),
        at(100),
        resident_mb(pid)
    ));
    let _ = serve.kill();
    let _ = serve.wait();
}

fn say(what: &str, rate: f64, cpu: f64, recovery: f64) {
    report(&format!(
        "{what}: {rate:.0}/s at {CONNECTIONS} connections, {:.0} us of server CPU each, {:.2} times a bare recovery",
        cpu * 1e6,
        cpu / recovery
    ));
}

/// The binary, on one core where that can be said.
fn hivetill(core: Option<&str>) -> Command {
    let other = std::env::var("HIVETILL_PROGRAM");
    let program = other.as_deref().unwrap_or(env!("CARGO_BIN_EXE_hivetill"));
    let can_pin = Command::new("taskset").arg("--version").output().is_ok();
    let mut command = match core.filter(|_| can_pin) {
        Some(core) => {
            let mut command = Command::new("taskset");
            command.args(["-c", core, program]);
            command
        }
        None => Command::new(program),
    };
    // The gateway would take it for a setting of its own.
    command.env_remove("HIVETILL_PROGRAM");
    command
}

async fn wait_for(address: SocketAddr) {
    let ready = request("GET", "/readyz", "", "");
    let deadline = Instant::now() + Duration::from_secs(30);
    while Instant::now() < deadline {
        if let Ok(mut stream) = TcpStream::connect(address).await {
            stream.write_all(ready.as_bytes()).await.expect("sent");
            let mut response = Vec::new();
            read_response(&mut stream, &mut response).await;
            if response.starts_with(b"HTTP/1.1 200") {
                return;
            }
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the gateway is not ready after 30 s");
}

/// CPU seconds that one recovery takes: the median of nine rounds of two thousand.
fn bare_recovery(key: &PrivateKey) -> f64 {
    let digest = [7; 32];
    let signature = key.sign(&digest);
    let recovery = RecoveryId::from_byte(signature.0[0] - 31).expect("a recovery id");
    let signature = k256::ecdsa::Signature::from_slice(&signature.0[1..]).expect("a signature");
    let round = || {
        let begin = own_cpu_seconds();
        for _ in 0..2_000 {
            black_box(VerifyingKey::recover_from_prehash(black_box(&digest), &signature, recovery).expect("recovers"));
        }
        (own_cpu_seconds() - begin) / 2_000.0
    };
    let mut rounds: Vec<f64> = (0..9).map(|_| round()).collect();
    rounds.sort_by(f64::total_cmp);
    rounds[4]
}

/// CPU seconds of this thread: others may be using the machine, too.
fn own_cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos: f64 = stat.split_whitespace().next().and_then(|field| field.parse().ok()).unwrap_or(0.0);
    nanos / 1e9
}

/// Opens sessions and signs a transfer for each; returns the bodies that verify and settle take, in the order in which
/// the sessions were opened: they are paid in about that order.
async fn prepare(api: SocketAddr, node: SocketAddr, api_key: &str, key: &PrivateKey, count: usize) -> Vec<String> {
    let head_request = r#"{"jsonrpc":"2.0","id":1,"method":"database_api.get_dynamic_global_properties","params":{}}"#;
    let head = once(node, &request("POST", "/", "", head_request)).await;
    let head: Value = serde_json::from_str(head.split("\r\n\r\n").nth(1).expect("a body")).expect("JSON");
    let head = &head["result"];
    let block = BlockId::parse(head["head_block_id"].as_str().expect("an id")).expect("an id");
    let now = Timestamp::parse_ledger(head["time"].as_str().expect("a time")).expect("a time");
    let (ref_block_num, ref_block_prefix) = engine::hive::tapos_of(block);
    let create = request(
        "POST",
        "/api/public/payments",
        api_key,
        r#"{"amount":"1","currency":"HBD","description":"An article"}"#,
    );
    let left = Arc::new(AtomicUsize::new(count));
    let work: Vec<_> = (0..CONNECTIONS)
        .map(|_| {
            let (create, left, key) = (create.clone(), Arc::clone(&left), key.clone());
            tokio::spawn(async move {
                let mut stream = TcpStream::connect(api).await.expect("listening");
                let (mut response, mut bodies) = (Vec::new(), Vec::new());
                while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
                    stream.write_all(create.as_bytes()).await.expect("sent");
                    read_response(&mut stream, &mut response).await;
                    let text = std::str::from_utf8(&response).expect("text");
                    let id = &text[text.find("\"pay_").expect("an id") + 1..][..30];
                    let transfer = Transfer {
                        from: "alice".to_owned(),
                        to: "shop.demo".to_owned(),
                        amount: Asset { units: 1, symbol: Symbol::Hbd },
                        memo: format!("pos-{id}"),
                    };
                    let mut transaction = Transaction {
                        ref_block_num,
                        ref_block_prefix,
                        expiration: now + Duration::from_secs(1_800),
                        operations: vec![Operation::Transfer(transfer)],
                        signatures: Vec::new(),
                    };
                    transaction.sign(ChainId::MAINNET, Pack::Legacy, &key);
                    let signed: Value = serde_json::from_str(&transaction.to_condenser_json()).expect("JSON");
                    let payload = json!({"x402Version": 1, "scheme": "exact", "network": "hive:mainnet",
                        "payload": {"signedTransaction": signed, "nonce": id}});
                    bodies.push((id.to_owned(), json!({"sessionId": id, "paymentPayload": payload}).to_string()));
                }
                bodies
            })
        })
        .collect();
    let mut all = Vec::with_capacity(count);
    for work in work {
        all.extend(work.await.expect("no panic"));
    }
    all.sort_unstable();
    all.into_iter().map(|(_, body)| body).collect()
}

fn call(what: &str, body: &str) -> String {
    request("POST", &format!("/api/public/x402/{what}"), "", body)
}

/// Sends the requests over 64 connections, each once or around and around; returns answers a second and the server's
/// CPU seconds for each.
async fn load(api: SocketAddr, pid: u32, requests: &[String], time: Duration, around: bool) -> (f64, f64) {
    let requests: Arc<[String]> = requests.into();
    let next = Arc::new(AtomicUsize::new(0));
    let (begin, cpu_before) = (Instant::now(), cpu_seconds(pid));
    let work: Vec<_> = (0..CONNECTIONS)
        .map(|_| {
            let (requests, next) = (Arc::clone(&requests), Arc::clone(&next));
            tokio::spawn(async move {
                let mut stream = TcpStream::connect(api).await.expect("listening");
                stream.set_nodelay(true).expect("a socket");
                let mut response = Vec::new();
                let mut done = 0usize;
                while begin.elapsed() < time {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(request) = requests.get(if around { at % requests.len() } else { at }) else { break };
                    stream.write_all(request.as_bytes()).await.expect("sent");
                    read_response(&mut stream, &mut response).await;
                    assert_success(&response);
                    done += 1;
                }
                done
            })
        })
        .collect();
    let mut done = 0;
    for work in work {
        done += work.await.expect("no panic");
    }
    let seconds = begin.elapsed().as_secs_f64();
    assert!(around || done < requests.len() || seconds >= time.as_secs_f64() / 2.0, "too few payments were prepared");
    let done = u32::try_from(done).map_or(f64::MAX, f64::from);
    (done / seconds, (cpu_seconds(pid) - cpu_before) / done)
}

/// Every payer on a connection of its own, all at once; returns how long each waited.
async fn at_once(api: SocketAddr, requests: Vec<String>) -> Vec<Duration> {
    let gate = Arc::new(tokio::sync::Barrier::new(requests.len()));
    let work: Vec<_> = requests
        .into_iter()
        .map(|request| {
            let gate = Arc::clone(&gate);
            tokio::spawn(async move {
                let mut stream = TcpStream::connect(api).await.expect("listening");
                let mut response = Vec::new();
                gate.wait().await;
                let begin = Instant::now();
                stream.write_all(request.as_bytes()).await.expect("sent");
                read_response(&mut stream, &mut response).await;
                assert_success(&response);
                begin.elapsed()
            })
        })
        .collect();
    let mut latencies = Vec::new();
    for work in work {
        latencies.push(work.await.expect("no panic"));
    }
    latencies
}

fn assert_success(response: &[u8]) {
    let text = String::from_utf8_lossy(response);
    let is_good = text.contains("\"isValid\":true") || text.contains("\"success\":true");
    assert!(text.starts_with("HTTP/1.1 200") && is_good, "{text}");
}

/// CPU seconds of a process, user and system.
fn cpu_seconds(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: f64 = fields.skip(11).take(2).filter_map(|field| field.parse::<f64>().ok()).sum();
    ticks / 100.0
}

fn resident_mb(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    stat.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4_096 / 1_000_000
}
