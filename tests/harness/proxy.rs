//! A proxy before a ledger node: forwards requests, or injects faults of public nodes that are drawn from a seed.

use std::{
    collections::{BTreeMap, VecDeque},
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use serde_json::Value;
use simulations::random::Random;

use super::{
    http::Api,
    receiver,
    wait::{background, pause, until},
};

/// Responses with the head block that are kept to be returned later.
const OLD_HEADS: usize = 40;

/// A fault instead of the node's response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// Closes the connection without a response and does not call the node.
    CloseConnection,
    /// Closes the connection in the middle of the response.
    TruncateResponse,
    /// Reads the request and never responds.
    Hang,
    /// Responds late.
    Slow,
    /// Responds with an HTTP status and without JSON-RPC.
    Status(u16),
    /// Sends the first half of the JSON as a complete response.
    TruncateJson,
    /// The response to another request, with this request's id.
    WrongId,
    /// An earlier head block.
    StaleHead,
    /// Blocks with other amounts and memos, different for each proxy.
    WrongBlocks,
    /// Forwards a broadcast and drops the response.
    DropResponse,
}

impl Fault {
    /// Every fault.
    pub(crate) const ALL: [Self; 12] = [
        Self::CloseConnection,
        Self::TruncateResponse,
        Self::Hang,
        Self::Slow,
        Self::Status(500),
        Self::Status(502),
        Self::Status(429),
        Self::TruncateJson,
        Self::WrongId,
        Self::StaleHead,
        Self::WrongBlocks,
        Self::DropResponse,
    ];
}

/// A listening proxy. By default it forwards every request unchanged.
pub(crate) struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    upstream: Mutex<Api>,
    /// The number of the current listener; the others exit.
    listener: AtomicU64,
    fault_plan: Mutex<FaultPlan>,
    heads: Mutex<VecDeque<Value>>,
    committed: Mutex<BTreeMap<Fault, u64>>,
    /// Distinguishes the invented blocks of this proxy from those of others.
    number: u64,
}

/// The injected faults and their rate.
struct FaultPlan {
    random: Random,
    percent: u64,
    faults: Vec<Fault>,
}

impl Proxy {
    /// Starts a proxy before a node.
    pub(crate) fn before(node: &Api) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(1);
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound");
        let shared = Arc::new(Shared {
            upstream: Mutex::new(node.clone()),
            listener: AtomicU64::new(0),
            fault_plan: Mutex::new(FaultPlan { random: Random::new(0), percent: 0, faults: Vec::new() }),
            heads: Mutex::default(),
            committed: Mutex::default(),
            number: COUNT.fetch_add(1, Ordering::Relaxed),
        });
        listen(listener, 0, &shared);
        Self { address, shared }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Forwards to another node from now on.
    pub(crate) fn set_upstream(&self, node: &Api) {
        *locked(&self.shared.upstream) = node.clone();
    }

    /// Injects one of these faults into `percent` of the requests.
    pub(crate) fn inject_faults(&self, seed: u64, percent: u64, faults: &[Fault]) {
        *locked(&self.shared.fault_plan) = FaultPlan { random: Random::new(seed), percent, faults: faults.to_vec() };
    }

    /// Injects no more faults.
    pub(crate) fn clear_faults(&self) {
        self.inject_faults(0, 0, &[]);
    }

    /// Refuses connections, like a machine whose node is not running.
    pub(crate) fn stop_listening(&self) {
        self.shared.listener.fetch_add(1, Ordering::SeqCst);
        // The loop waits for a connection, which this is.
        let _ = TcpStream::connect(self.address);
        until("the port to be closed", || TcpStream::connect(self.address).is_err().then_some(()));
    }

    /// Listens again at the same address.
    pub(crate) fn listen_again(&self) {
        let listener = until("the port to be free", || TcpListener::bind(self.address).ok());
        listen(listener, self.shared.listener.load(Ordering::SeqCst), &self.shared);
    }

    /// Returns the number of injections of each fault.
    pub(crate) fn committed(&self) -> BTreeMap<Fault, u64> {
        locked(&self.shared.committed).clone()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.listener.fetch_add(1, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
    }
}

fn listen(listener: TcpListener, number: u64, shared: &Arc<Shared>) {
    let shared = Arc::clone(shared);
    background(move || {
        for stream in listener.incoming() {
            if shared.listener.load(Ordering::SeqCst) != number {
                return;
            }
            let (Ok(stream), shared) = (stream, Arc::clone(&shared)) else { continue };
            background(move || serve(&stream, &shared));
        }
    });
}

fn serve(stream: &TcpStream, shared: &Shared) {
    let _ = stream.set_read_timeout(Some(Duration::from_secs(10)));
    let Some(asked) = receiver::read(stream) else { return };
    let asked: Value = serde_json::from_slice(&asked.body).unwrap_or_default();
    let method = asked["method"].as_str().unwrap_or_default().to_owned();
    let fault = shared.draw(&method);
    match fault {
        Some(Fault::CloseConnection) => return,
        Some(Fault::Hang) => {
            // Until the caller's timeout.
            let _ = (&mut &*stream).read(&mut [0]);
            return;
        }
        Some(Fault::Status(status)) => return say(stream, status, b"{\"error\":\"try again later\"}"),
        Some(Fault::WrongId) => return say(stream, 200, br#"{"jsonrpc":"2.0","result":{},"id":4711}"#),
        Some(Fault::Slow) => pause(Duration::from_millis(300)),
        _ => {}
    }
    let Some(mut response) = shared.request(&asked) else { return };
    match fault {
        Some(Fault::DropResponse) => return,
        Some(Fault::StaleHead) => response["result"] = shared.old_head().unwrap_or(response["result"].take()),
        _ => {}
    }
    if method.ends_with("get_dynamic_global_properties") && fault.is_none() {
        shared.remember(&response["result"]);
    }
    let mut text = response.to_string();
    if fault == Some(Fault::WrongBlocks) {
        text = text.replace("\"pos-", &format!("\"pos-{}", shared.number));
        text = text.replace("\"amount\":\"", &format!("\"amount\":\"{}", shared.number));
    }
    match fault {
        Some(Fault::TruncateJson) => say(stream, 200, &text.as_bytes()[..text.len() / 2]),
        Some(Fault::TruncateResponse) => {
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", text.len());
            let _ = (&mut &*stream).write_all(&[head.as_bytes(), &text.as_bytes()[..text.len() / 2]].concat());
        }
        _ => say(stream, 200, text.as_bytes()),
    }
}

fn say(mut stream: &TcpStream, status: u16, body: &[u8]) {
    let head = format!(
        "HTTP/1.1 {status} So\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    let _ = stream.write_all(&[head.as_bytes(), body].concat());
}

impl Shared {
    /// Draws the fault of a request; a fault that does not apply to it is none.
    fn draw(&self, method: &str) -> Option<Fault> {
        let fault = {
            let mut plan = locked(&self.fault_plan);
            let percent = plan.percent;
            if plan.faults.is_empty() || plan.random.below(100) >= percent {
                return None;
            }
            let faults = plan.faults.clone();
            *plan.random.pick(&faults)
        };
        let fits = match fault {
            Fault::StaleHead => method.ends_with("get_dynamic_global_properties"),
            Fault::WrongBlocks => method.starts_with("block_api"),
            Fault::DropResponse => method.contains("broadcast"),
            _ => true,
        };
        if fits {
            *locked(&self.committed).entry(fault).or_default() += 1;
        }
        fits.then_some(fault)
    }

    fn request(&self, asked: &Value) -> Option<Value> {
        let node = locked(&self.upstream).clone();
        serde_json::from_slice(&node.post("/", asked).try_send().ok()?.body).ok()
    }

    fn remember(&self, head: &Value) {
        let mut heads = locked(&self.heads);
        heads.push_back(head.clone());
        if heads.len() > OLD_HEADS {
            heads.pop_front();
        }
    }

    fn old_head(&self) -> Option<Value> {
        locked(&self.heads).front().cloned()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
