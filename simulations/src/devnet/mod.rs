//! The chain behind Hive's JSON-RPC, for `hivetill dev`, `hivetill ledger` and the tests.
//!
//! [`Devnet::start`] binds one socket for each node and one for the control API, and owns the chain in one task. All nodes
//! serve the same chain, each with its own lag, wrong data and outages ([`control`]). Unmodified Hive clients use any of them as
//! their node. Blocks are produced every [`Options::block_interval`], or only when the control API requests them.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//! use engine::time::Timestamp;
//! use simulations::{devnet::{Devnet, Options}, ledger::{Genesis, Role}};
//!
//! let clock = Arc::new(|| Timestamp::from_millis(1_800_000_000_000)); // the caller's wall clock
//! let options = Options::new(Genesis::demo([7; 32], clock()), clock);
//! let devnet = Devnet::start(Options { auto_produce: false, ..options }).await?;
//! let node = devnet.rpc_url(0);                                       // http://127.0.0.1:port
//! let alice = devnet.genesis().key("alice", Role::Active).to_wif();
//! devnet.control("control.produce", serde_json::json!({"count": 20})).await?;
//! devnet.shutdown().await;
//! # Ok(()) }
//! ```

mod accounts;
mod blocks;
pub mod control;
mod failure;
mod faults;
mod foreign;
mod globals;
mod help;
mod host;
mod http;
mod journal;
mod node_api;
mod node_faults;
mod params;
mod rpc;
mod send;
mod server;
mod shape;
mod status;
mod waiting;

use std::{fmt, io, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use engine::time::Timestamp;
use serde_json::{Value, json};
use tokio::{
    net::TcpListener,
    sync::{mpsc, oneshot, watch},
    task::JoinSet,
};

pub use failure::Failure;
pub use journal::JournalError;

use crate::ledger::Genesis;
use host::{Answer, Host, Request};

/// Returns the present time; injected, so that nothing here reads a clock.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// How the dev ledger runs.
#[derive(Clone)]
pub struct Options {
    /// What the chain begins with. If [`Options::state`] names a file that exists, the genesis in it counts instead.
    pub genesis: Genesis,
    /// The socket address of each node; port 0 selects a free port. Most callers use the first.
    pub nodes: Vec<SocketAddr>,
    /// The socket address of the control API; `None` leaves only [`Devnet::control`].
    pub control: Option<SocketAddr>,
    /// The time between two automatic blocks. 3 s, as on the main chain.
    pub block_interval: Duration,
    /// How much later than the block before it a block's time is at least, whole seconds. `None` takes
    /// [`Options::block_interval`] rounded down, so that with an interval below one second blocks follow the wall clock
    /// and making many of them at once does not move the chain's time ahead of it.
    pub block_step: Option<Duration>,
    /// How many blocks finality stays behind the head. 2, as on the main chain on a good day.
    pub irreversibility_lag: u32,
    /// Whether blocks are produced automatically; otherwise only `control.produce` does.
    pub auto_produce: bool,
    /// Stores the chain in this file (mode 0600): it survives a kill, up to the last block.
    pub state: Option<PathBuf>,
    /// The wall clock.
    pub clock: Clock,
}

impl Options {
    /// Returns the defaults: one node and the control API on free ports of 127.0.0.1, a block every 3 s, no state file.
    #[must_use]
    pub fn new(genesis: Genesis, clock: Clock) -> Self {
        let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
        Self {
            genesis,
            nodes: vec![any_port],
            control: Some(any_port),
            block_interval: Duration::from_secs(3),
            block_step: None,
            irreversibility_lag: 2,
            auto_produce: true,
            state: None,
            clock,
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("nodes", &self.nodes)
            .field("control", &self.control)
            .field("block_interval", &self.block_interval)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

/// Why the dev ledger cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// An address cannot be bound.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// The state file cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// A running dev ledger. Dropping it stops it; [`Devnet::shutdown`] also waits.
#[derive(Debug)]
pub struct Devnet {
    /// The socket addresses of the nodes, in the order of [`Options::nodes`].
    pub rpc_addrs: Vec<SocketAddr>,
    /// The socket address of the control API.
    pub control_addr: Option<SocketAddr>,
    genesis: Genesis,
    requests: mpsc::Sender<Request>,
    stop: watch::Sender<bool>,
    tasks: JoinSet<()>,
}

impl Devnet {
    /// Starts the dev ledger on the current tokio runtime.
    ///
    /// # Errors
    /// [`StartError`], if an address is in use or the state file is invalid.
    pub async fn start(options: Options) -> Result<Self, StartError> {
        let mut nodes = Vec::new();
        for address in &options.nodes {
            nodes.push(listen(*address).await?);
        }
        let control = match options.control {
            Some(address) => Some(listen(address).await?),
            None => None,
        };
        let local = |listener: &TcpListener| listener.local_addr().expect("a bound listener has an address");
        let rpc_addrs: Vec<SocketAddr> = nodes.iter().map(local).collect();
        let control_addr = control.as_ref().map(local);
        let host = Host::open(&options)?;
        let genesis = host.genesis().clone();
        let (requests, inbox) = mpsc::channel(256);
        let (stop, stopped) = watch::channel(false);
        let mut tasks = JoinSet::new();
        tasks.spawn(server::run(host, inbox, stopped.clone()));
        for (node, listener) in nodes.into_iter().enumerate() {
            tasks.spawn(http::serve(listener, http::Endpoint::Node(node), requests.clone(), stopped.clone()));
        }
        if let Some(listener) = control {
            tasks.spawn(http::serve(listener, http::Endpoint::Control, requests.clone(), stopped));
        }
        Ok(Self { rpc_addrs, control_addr, genesis, requests, stop, tasks })
    }

    /// Returns what the chain began with; its keys are derived from it ([`Genesis::key`]).
    #[must_use]
    pub const fn genesis(&self) -> &Genesis {
        &self.genesis
    }

    /// Returns a node's address as a URL: `http://127.0.0.1:8091`.
    ///
    /// # Panics
    /// If there is no such node.
    #[must_use]
    pub fn rpc_url(&self, node: usize) -> String {
        format!("http://{}", self.rpc_addrs[node])
    }

    /// Calls a control method of the running ledger; see [`control`] for the methods.
    ///
    /// # Errors
    /// [`Failure`], as the caller over the network would get it.
    pub async fn control(&self, method: &str, params: Value) -> Result<Value, Failure> {
        let (reply, answer) = oneshot::channel();
        let request = Request::Control { method: method.to_owned(), params, reply };
        self.requests.send(request).await.map_err(|_| Failure::stopped())?;
        answer.await.map_err(|_| Failure::stopped())?
    }

    /// Calls a node's method from this process, as a client would over the network.
    ///
    /// # Errors
    /// [`Failure`], as the client would get it; also where the node's faults drop the response.
    pub async fn rpc(&self, node: usize, method: &str, params: Value) -> Result<Value, Failure> {
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let (reply, answer) = oneshot::channel();
        let request = Request::Rpc { node, body: request.to_string().into(), reply };
        self.requests.send(request).await.map_err(|_| Failure::stopped())?;
        match answer.await.map_err(|_| Failure::stopped())? {
            Answer::HangUp => Err(Failure::no_answer()),
            Answer::Reply { body, .. } => rpc::result(&body),
        }
    }

    /// Waits until the ledger stops, which it does only when its state file cannot be written.
    pub async fn ended(&mut self) {
        self.tasks.join_next().await;
    }

    /// Stops listening and producing, and waits until the chain is on disk.
    pub async fn shutdown(mut self) {
        self.stop.send_replace(true);
        while self.tasks.join_next().await.is_some() {}
    }
}

async fn listen(address: SocketAddr) -> Result<TcpListener, StartError> {
    TcpListener::bind(address).await.map_err(|source| StartError::Listen { address, source })
}
