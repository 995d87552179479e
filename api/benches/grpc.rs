//! gRPC beside REST, against the binary: the latency of each class of methods, calls a second and the server's CPU a call at
//! several calls in flight, and a crowd of watches and calls at once.
//!
//! `cargo bench -p api --bench grpc`. Client and server share the machine; both interfaces are asked by turns in one run,
//! and each figure is the median of its rounds. `-- short` only tries every part.

mod wire;

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::future::{BoxFuture, join_all};
use proto::{Caller, Engine, IntoRecord, Transport, v1};
use tokio::{io::AsyncWriteExt, net::TcpStream, time::Instant};
use tokio_stream::StreamExt;
use tonic::{Code, Response, Status, transport::Channel};
use wire::{Server, once, read_response, report, request};

/// How much is measured.
#[derive(Clone, Copy)]
struct Scale {
    rounds: usize,
    /// Calls one after the other.
    calls: usize,
    /// How long calls in flight are counted.
    time: Duration,
}

const WHOLE: Scale = Scale { rounds: 5, calls: 2_000, time: Duration::from_secs(2) };
const SHORT: Scale = Scale { rounds: 1, calls: 20, time: Duration::from_millis(200) };

/// Calls in flight, and the gRPC connections they share; REST has a connection for each.
const IN_FLIGHT: [(usize, usize); 4] = [(1, 1), (16, 1), (64, 1), (64, 4)];
/// Watches of one connection, and calls at once beside them, over so many connections.
const WATCHES: usize = 500;
const CROWD: usize = 10_000;
const CROWD_CONNECTIONS: usize = 10;
/// How long the last of the crowd may take.
const TIMEOUT: Duration = Duration::from_secs(60);

const BODY: &str = r#"{"amount":"1500","currency":"HBD","description":"A blue mug","metadata":{"orderId":"7"}}"#;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let is_short = std::env::args().any(|argument| argument == "short");
    runtime.block_on(measure(if is_short { SHORT } else { WHOLE }));
}

/// A gateway, and how it is reached.
struct Gateway {
    server: Server,
    api: SocketAddr,
    grpc: String,
    token: String,
    key: String,
    admin_key: String,
    merchant: String,
}

impl Gateway {
    fn start() -> Self {
        let free = ["--listen", "127.0.0.1:0", "--ledger-listen", "127.0.0.1:0", "--grpc-listen", "127.0.0.1:0"];
        let server = Server::start(Command::new(env!("CARGO_BIN_EXE_hivetill")).args(["dev", "--json"]).args(free));
        let started: serde_json::Value = serde_json::from_str(&server.first_line).expect("one line of JSON");
        let text = |pointer: &str| started.pointer(pointer).and_then(|text| text.as_str()).expect(pointer).to_owned();
        let api = text("/api").strip_prefix("http://").and_then(|at| at.parse().ok()).expect("an address");
        Self {
            api,
            grpc: text("/grpc"),
            token: text("/grpcToken"),
            key: text("/merchant/apiKey"),
            admin_key: text("/admin/apiKey"),
            merchant: text("/merchant/id"),
            server,
        }
    }

    /// Opens a connection of its own.
    async fn engine(&self) -> Engine {
        let endpoint = Channel::from_shared(self.grpc.clone()).expect("a URL").tcp_nodelay(true);
        let channel = endpoint.connect().await.expect("the port answers");
        Engine::new(Transport::remote(channel, Some(&self.token)).expect("a token"))
    }

    /// Milliseconds of CPU that it has used.
    fn cpu_ms(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.server.child.id())).expect("it runs");
        let fields = stat.rsplit(')').next().expect("a name").split_whitespace().skip(11).take(2);
        fields.map(|ticks| ticks.parse::<u64>().expect("a number") * 10).sum()
    }
}

/// One call over a connection.
type Request = Arc<dyn Fn(Engine) -> BoxFuture<'static, Result<(), Status>> + Send + Sync>;

/// The same question to both interfaces.
struct Class {
    name: &'static str,
    rest: String,
    grpc: Request,
}

fn as_request<F>(call: impl Fn(Engine) -> F + Send + Sync + 'static) -> Request
where
    F: Future<Output = Result<(), Status>> + Send + 'static,
{
    Arc::new(move |engine| Box::pin(call(engine)))
}

fn done<T>(response: Result<Response<T>, Status>) -> Result<(), Status> {
    response.map(|_| ())
}

fn order() -> v1::CreatePaymentRequest {
    v1::CreatePaymentRequest {
        amount_units: 1_500,
        currency: v1::Currency::Hbd.into(),
        description: "A blue mug".to_owned(),
        ..v1::CreatePaymentRequest::default()
    }
}

/// Returns a class of methods each: creations, reads of one record, lists, changes, and what an admin reads.
fn classes(gateway: &Gateway, id: &str) -> Vec<Class> {
    let key = gateway.key.as_str();
    let get = |path: &str| request("GET", path, key, "");
    let shop = || Caller::with_key(key);
    let (by, payment_id) = (shop(), id.to_owned());
    let create = as_request(move |engine| {
        let request = by.request(order());
        async move { done(engine.payments().create_payment(request).await) }
    });
    let by = shop();
    let read = as_request(move |engine| {
        let request = by.request(v1::GetPaymentRequest { payment_id: payment_id.clone() });
        async move { done(engine.payments().get_payment(request).await) }
    });
    let (by, payment_id) = (shop(), id.to_owned());
    let status = as_request(move |engine| {
        let request = by.request(v1::GetPaymentStatusRequest { payment_id: payment_id.clone() });
        async move { done(engine.payments().get_payment_status(request).await) }
    });
    let by = shop();
    let list = as_request(move |engine| {
        let request = by.request(v1::ListPaymentsRequest { page_size: 20, ..Default::default() });
        async move { done(engine.payments().list_payments(request).await) }
    });
    let by = shop();
    let events = as_request(move |engine| {
        let request = by.request(v1::ListEventsRequest { page_size: 20, ..Default::default() });
        async move { done(engine.events().list_events(request).await) }
    });
    let (by, merchant_id) = (shop(), gateway.merchant.clone());
    let update = as_request(move |engine| {
        let name = Some("Blue Mug Shop".to_owned());
        let request = v1::UpdateMerchantRequest { merchant_id: merchant_id.clone(), name, ..Default::default() };
        let request = by.request(request);
        async move { done(engine.merchants().update_merchant(request).await) }
    });
    let by = Caller::with_key(&gateway.admin_key);
    let audit = as_request(move |engine| {
        let request = by.request(v1::ListAuditRequest { page_size: 20, ..Default::default() });
        async move { done(engine.audit_log().list_audit(request).await) }
    });
    let path = format!("/api/public/payments/{id}");
    let merchant = format!("/api/public/merchants/{}", gateway.merchant);
    let class = |name, rest, grpc| Class { name, rest, grpc };
    vec![
        class("create", request("POST", "/api/public/payments", key, BODY), create),
        class("get", get(&path), read),
        class("status", get(&format!("{path}/status")), status),
        class("list", get("/api/public/payments?limit=20"), list),
        class("events", get("/api/public/events?limit=20"), events),
        class("update", request("PUT", &merchant, key, r#"{"name":"Blue Mug Shop"}"#), update),
        class("audit", request("GET", "/api/admin/audit?limit=20", &gateway.admin_key, ""), audit),
    ]
}

async fn measure(scale: Scale) {
    let gateway = Gateway::start();
    let made = once(gateway.api, &request("POST", "/api/public/payments", &gateway.key, BODY)).await;
    let id = made[made.find("pay_").expect("an id")..][..30].to_owned();
    let classes = classes(&gateway, &id);
    report("one call after the other: p50, us");
    for class in &classes {
        sequential(&gateway, class, scale).await;
    }
    report("calls in flight: a second, and us of the server's CPU a call");
    for class in classes.iter().filter(|class| matches!(class.name, "get" | "create")) {
        for (in_flight, connections) in IN_FLIGHT {
            concurrent(&gateway, class, in_flight, connections, scale).await;
        }
    }
    crowd(&gateway, &classes).await;
}

fn median(mut figures: Vec<u64>) -> u64 {
    figures.sort_unstable();
    figures[figures.len() / 2]
}

fn us(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).expect("short")
}

async fn sequential(gateway: &Gateway, class: &Class, scale: Scale) {
    let (mut rest, mut grpc) = (Vec::new(), Vec::new());
    let engine = gateway.engine().await;
    let mut stream = TcpStream::connect(gateway.api).await.expect("listening");
    stream.set_nodelay(true).expect("a socket");
    let mut response = Vec::with_capacity(64 * 1_024);
    for _ in 0..scale.rounds {
        let mut latencies = Vec::new();
        for _ in 0..scale.calls {
            let start = Instant::now();
            stream.write_all(class.rest.as_bytes()).await.expect("sent");
            read_response(&mut stream, &mut response).await;
            latencies.push(us(start.elapsed()));
            assert!(response.starts_with(b"HTTP/1.1 20"), "{}", String::from_utf8_lossy(&response));
        }
        rest.push(median(latencies));
        let mut latencies = Vec::new();
        for _ in 0..scale.calls {
            let start = Instant::now();
            (class.grpc)(engine.clone()).await.expect(class.name);
            latencies.push(us(start.elapsed()));
        }
        grpc.push(median(latencies));
    }
    let (rest, grpc) = (median(rest), median(grpc));
    report(&format!("{:>8}   REST {rest:>6}   gRPC {grpc:>6}   {} %", class.name, grpc * 100 / rest.max(1)));
}

/// Calls counted while they run, and the server's CPU meanwhile.
#[derive(Clone, Copy)]
struct Rate {
    per_second: u64,
    cpu_us: u64,
}

async fn counted(gateway: &Gateway, counter: &AtomicU64, scale: Scale) -> Rate {
    // The first moments warm caches and connections up.
    tokio::time::sleep(scale.time / 4).await;
    let (calls, cpu, start) = (counter.load(Ordering::Relaxed), gateway.cpu_ms(), Instant::now());
    tokio::time::sleep(scale.time).await;
    let calls = counter.load(Ordering::Relaxed) - calls;
    let cpu_ms = gateway.cpu_ms() - cpu;
    Rate { per_second: calls * 1_000_000 / us(start.elapsed()).max(1), cpu_us: cpu_ms * 1_000 / calls.max(1) }
}

async fn concurrent(gateway: &Gateway, class: &Class, in_flight: usize, connections: usize, scale: Scale) {
    let (mut rest, mut grpc) = (Vec::new(), Vec::new());
    for _ in 0..scale.rounds {
        let counter = Arc::new(AtomicU64::new(0));
        let callers: Vec<_> = (0..in_flight)
            .map(|_| {
                let (counter, sent, api) = (Arc::clone(&counter), class.rest.clone(), gateway.api);
                tokio::spawn(async move {
                    let mut stream = TcpStream::connect(api).await.expect("listening");
                    stream.set_nodelay(true).expect("a socket");
                    let mut response = Vec::with_capacity(4_096);
                    loop {
                        stream.write_all(sent.as_bytes()).await.expect("sent");
                        read_response(&mut stream, &mut response).await;
                        assert!(response.starts_with(b"HTTP/1.1 20"), "{}", String::from_utf8_lossy(&response));
                        counter.fetch_add(1, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        rest.push(counted(gateway, &counter, scale).await);
        callers.iter().for_each(tokio::task::JoinHandle::abort);
        let counter = Arc::new(AtomicU64::new(0));
        let engines = join_all((0..connections).map(|_| gateway.engine())).await;
        let callers: Vec<_> = (0..in_flight)
            .map(|caller| {
                let (counter, call) = (Arc::clone(&counter), Arc::clone(&class.grpc));
                let engine = engines[caller % connections].clone();
                tokio::spawn(async move {
                    loop {
                        call(engine.clone()).await.expect("answered");
                        counter.fetch_add(1, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        grpc.push(counted(gateway, &counter, scale).await);
        callers.iter().for_each(tokio::task::JoinHandle::abort);
    }
    let middle = |rates: &[Rate], figure: fn(&Rate) -> u64| median(rates.iter().map(figure).collect());
    let row = |rates: &[Rate]| {
        format!("{:>7}/s {:>5} us", middle(rates, |rate| rate.per_second), middle(rates, |rate| rate.cpu_us))
    };
    report(&format!(
        "{:>8}   {in_flight:>3} in flight, {connections} connections   REST {}   gRPC {}",
        class.name,
        row(&rest),
        row(&grpc)
    ));
}

/// Holds watches of one connection, makes ten thousand calls at once beside them, and has every watch see a change.
async fn crowd(gateway: &Gateway, classes: &[Class]) {
    let engine = gateway.engine().await;
    let by = Caller::with_key(&gateway.key);
    let watched = engine.payments().create_payment(by.request(order())).await.expect("created");
    let payment_id = watched.into_record().expect("a payment").id;
    let watch = v1::WatchPaymentRequest { payment_id: payment_id.clone() };
    let mut watches = Vec::new();
    for _ in 0..WATCHES {
        let stream = engine.payments().watch_payment(by.request(watch.clone())).await;
        let mut stream = stream.expect("a watch").into_inner();
        stream.next().await.expect("at once").expect("a snapshot");
        watches.push(stream);
    }
    report(&format!("{WATCHES} watches are open on one connection"));
    for class in classes.iter().filter(|class| matches!(class.name, "get" | "create")) {
        let engines = join_all((0..CROWD_CONNECTIONS).map(|_| gateway.engine())).await;
        let (start, repeats) = (Instant::now(), Arc::new(AtomicU64::new(0)));
        let calls = (0..CROWD).map(|number| {
            let call =
                patient(Arc::clone(&class.grpc), engines[number % CROWD_CONNECTIONS].clone(), Arc::clone(&repeats));
            tokio::spawn(tokio::time::timeout(TIMEOUT, call))
        });
        let calls: Vec<_> = calls.collect();
        let mut codes: BTreeMap<String, usize> = BTreeMap::new();
        for call in calls {
            let code = match call.await.expect("it ran") {
                Ok(Ok(())) => Code::Ok,
                Ok(Err(status)) => status.code(),
                Err(_) => Code::DeadlineExceeded,
            };
            *codes.entry(format!("{code:?}")).or_default() += 1;
        }
        let (ms, repeats) = (us(start.elapsed()) / 1_000, repeats.load(Ordering::Relaxed));
        report(&format!(
            "{:>8}   {CROWD} at once over {CROWD_CONNECTIONS} connections: {codes:?} in {ms} ms, {repeats} repeats",
            class.name
        ));
    }
    let cancel = by.request(v1::CancelPaymentRequest { payment_id });
    engine.payments().cancel_payment(cancel).await.expect("cancelled");
    let seen = join_all(watches.iter_mut().map(|stream| tokio::time::timeout(TIMEOUT, stream.next()))).await;
    let seen = seen.iter().filter(|seen| matches!(seen, Ok(Some(Ok(_))))).count();
    report(&format!("{seen} of {WATCHES} watches have seen the change"));
}

/// Calls as services should: `UNAVAILABLE` (beyond `limits.waiting_calls`) is repeated after a second, up to nine times.
async fn patient(call: Request, engine: Engine, repeats: Arc<AtomicU64>) -> Result<(), Status> {
    for _ in 0..9 {
        match call(engine.clone()).await {
            Err(status) if status.code() == Code::Unavailable => {
                repeats.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            response => return response,
        }
    }
    call(engine).await
}
