//! REST end to end, against the binary: status reads beside a bare warp route, creations, and the checkout's pages.
//!
//! `cargo bench -p api --bench rest`. Client and server share the machine, in both cases alike; each number is the
//! median of five runs. `-- one-core` reads statuses of random payments only, with the servers on the first core and the
//! client on the second (Linux, `taskset`).

mod wire;

use std::{
    io::Write as _,
    net::SocketAddr,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{io::AsyncWriteExt, net::TcpStream};
use warp::Filter;
use wire::{Server, once, read_answer, report, request};

const RUNS: usize = 5;
const RUN_TIME: Duration = Duration::from_secs(2);

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    if std::env::args().any(|argument| argument == "bare") {
        return runtime.block_on(bare());
    }
    if std::env::args().any(|argument| argument == "one-core") {
        return runtime.block_on(one_core());
    }
    runtime.block_on(measure());
}

/// Payments whose status is read in no order.
const PAYMENTS: usize = 2_000;
/// Runs of each server, by turns.
const ROUNDS: usize = 3;

/// Status reads where one core is all that a server has.
async fn one_core() {
    let this = std::env::current_exe().expect("this program");
    let me = std::process::id().to_string();
    let moved = Command::new("taskset").args(["-a", "-p", "-c", "1", &me]).output().expect("taskset is there");
    assert!(moved.status.success(), "{}", String::from_utf8_lossy(&moved.stderr));
    let bare = Server::start(Command::new("taskset").args(["-c", "0"]).arg(this).arg("bare"));
    let hivetill = env!("CARGO_BIN_EXE_hivetill");
    let free = ["--listen", "127.0.0.1:0", "--ledger-listen", "127.0.0.1:0", "--grpc-listen", "127.0.0.1:0"];
    let dev = Server::start(Command::new("taskset").args(["-c", "0", hivetill, "dev", "--json"]).args(free));
    let (api, key) = place_of(&dev);
    let create = request("POST", "/api/public/payments", &key, BODY);
    let mut requests = Vec::new();
    for _ in 0..PAYMENTS {
        let made = once(api, &create).await;
        let id = &made[made.find("pay_").expect("an id")..][..30];
        requests.push(request("GET", &format!("/api/public/payments/{id}/status"), &key, ""));
    }
    let bare_at: SocketAddr = bare.said.trim().parse().expect("an address");
    let requests: Arc<[String]> = requests.into();
    for callers in [1, 16, 64] {
        let (mut base, mut ours, mut shares) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let before = [cpu_ms(&bare), cpu_ms(&dev)];
            base.push(run_any(bare_at, &requests, callers).await);
            ours.push(run_any(api, &requests, callers).await);
            let used = [cpu_ms(&bare) - before[0], cpu_ms(&dev) - before[1]];
            shares.push(used.map(|ms| ms * 100 / u64::try_from((RUN_TIME + RUN_TIME / 4).as_millis()).expect("short")));
        }
        let middle = |mut rates: Vec<u64>| {
            rates.sort_unstable();
            rates[ROUNDS / 2]
        };
        let busy = [0, 1].map(|which| middle(shares.iter().map(|share| share[which]).collect()));
        let (base, ours) = (middle(base), middle(ours));
        let share = ours * 100 / base.max(1);
        report(&format!(
            "{callers:>4} callers   bare warp {base:>7}/s (its core {} % busy)   status {ours:>7}/s ({} % busy): {share} %",
            busy[0], busy[1]
        ));
    }
}

/// Milliseconds of CPU that a server has used.
fn cpu_ms(server: &Server) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", server.child.id())).expect("it runs");
    let fields = stat.rsplit(')').next().expect("a name").split_whitespace().skip(11).take(2);
    fields.map(|ticks| ticks.parse::<u64>().expect("a number") * 10).sum()
}

fn place_of(dev: &Server) -> (SocketAddr, String) {
    let said: serde_json::Value = serde_json::from_str(&dev.said).expect("one line of JSON");
    let api = said["api"].as_str().and_then(|url| url.strip_prefix("http://")?.parse().ok()).expect("where");
    (api, said["merchant"]["apiKey"].as_str().expect("a key").to_owned())
}

/// The least a warp server can do: one path, one small JSON.
async fn bare() {
    let route = warp::path!("api" / "public" / "payments" / String / "status")
        .and(warp::get())
        .map(|id: String| warp::reply::json(&serde_json::json!({"id": id, "status": "pending", "completedAt": null})));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    writeln!(std::io::stdout(), "{}", listener.local_addr().expect("bound")).expect("a reader");
    warp::serve(route).incoming(listener).run().await;
}

async fn measure() {
    let this = std::env::current_exe().expect("this program");
    let bare = Server::start(Command::new(this).arg("bare"));
    let free = ["--listen", "127.0.0.1:0", "--ledger-listen", "127.0.0.1:0", "--grpc-listen", "127.0.0.1:0"];
    let dev = Server::start(Command::new(env!("CARGO_BIN_EXE_hivetill")).args(["dev", "--json"]).args(free));
    let (api, key) = place_of(&dev);
    let key = key.as_str();
    let create = request("POST", "/api/public/payments", key, BODY);
    let made = once(api, &create).await;
    let id = &made[made.find("pay_").expect("an id")..][..30];
    let status = request("GET", &format!("/api/public/payments/{id}/status"), key, "");
    let record = request("GET", &format!("/api/public/payments/{id}"), key, "");
    let bare: SocketAddr = bare.said.trim().parse().expect("an address");

    for callers in [1, 16, 64] {
        let base = median(bare, &status, callers).await;
        let ours = median(api, &status, callers).await;
        let whole = median(api, &record, callers).await;
        let share = ours * 100 / base.max(1);
        report(&format!(
            "{callers:>4} callers   bare warp {base:>7}/s   status {ours:>7}/s ({share} %)   record {whole:>7}/s"
        ));
    }
    let page = request("GET", &format!("/checkout/{id}"), key, "").replace("*/*", "text/html");
    let pages = median(api, &page, 1).await;
    report(&format!("   1 caller    checkout page {pages:>7}/s, {} us each", 1_000_000 / pages.max(1)));
    for callers in [1, 10, 100] {
        let made = median(api, &create, callers).await;
        report(&format!("{callers:>4} callers   durable creations {made:>7}/s"));
    }
}

const BODY: &str = r#"{"amount":"1500","currency":"HBD","description":"A blue mug","metadata":{"orderId":"7"}}"#;

/// Answers a second, the median of five runs.
async fn median(address: SocketAddr, request: &str, callers: usize) -> u64 {
    let mut rates = Vec::new();
    for _ in 0..RUNS {
        rates.push(run(address, request, callers).await);
    }
    rates.sort_unstable();
    rates[RUNS / 2]
}

async fn run(address: SocketAddr, request: &str, callers: usize) -> u64 {
    run_any(address, &[request.to_owned()].into(), callers).await
}

/// Answers a second to callers that send one of the requests after the other, each from another one on.
async fn run_any(address: SocketAddr, requests: &Arc<[String]>, callers: usize) -> u64 {
    let done = Arc::new(AtomicU64::new(0));
    let mut tasks = Vec::new();
    for caller in 0..callers {
        let (done, requests) = (Arc::clone(&done), Arc::clone(requests));
        tasks.push(tokio::spawn(async move {
            let mut stream = TcpStream::connect(address).await.expect("listening");
            stream.set_nodelay(true).expect("a socket");
            let mut answer = Vec::with_capacity(4_096);
            // Steps of a prime jump about and meet all.
            let mut next = caller;
            loop {
                next = (next + 7_919) % requests.len();
                stream.write_all(requests[next].as_bytes()).await.expect("sent");
                read_answer(&mut stream, &mut answer).await;
                assert!(answer.starts_with(b"HTTP/1.1 20"), "{}", String::from_utf8_lossy(&answer));
                done.fetch_add(1, Ordering::Relaxed);
            }
        }));
    }
    // The first moments warm caches and connections up.
    tokio::time::sleep(RUN_TIME / 4).await;
    let before = done.load(Ordering::Relaxed);
    let start = tokio::time::Instant::now();
    tokio::time::sleep(RUN_TIME).await;
    let after = done.load(Ordering::Relaxed);
    let millis = u64::try_from(start.elapsed().as_millis()).expect("short").max(1);
    for task in tasks {
        task.abort();
    }
    (after - before) * 1_000 / millis
}
