//! The facade of a running engine as its clients see it: REST with the pages, and gRPC. The crate with the implementation
//! installs it once; in simulations with `facade` in their setup, clients call through it.

use std::{fmt, net::IpAddr, sync::Arc, sync::OnceLock};

use actors::Engine;
use bytes::Bytes;
use engine::time::Timestamp;
use futures_util::{future::BoxFuture, stream::BoxStream};

/// Creates facades of engines.
pub trait Front: fmt::Debug + Send + Sync {
    /// Creates the facade of an engine that has just started.
    fn open(&self, boot: Boot) -> Arc<dyn Endpoint>;
}

/// An engine that has just started, and the clock and random values that its facade must use.
pub struct Boot {
    /// The engine.
    pub engine: Engine,
    /// The wall clock.
    pub now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    /// The key that signs sessions and forms.
    pub secret: [u8; 32],
    /// The source of request ids.
    pub seed: u64,
}

/// The facade of one process. Requests that are pending when the process exits never get a response.
pub trait Endpoint: Send + Sync {
    /// Executes an HTTP request.
    fn rest(&self, request: Request) -> BoxFuture<'static, Reply>;

    /// Executes a gRPC call.
    fn grpc(&self, call: Call) -> BoxFuture<'static, Result<Vec<Shown>, Denied>>;

    /// Follows a payment by gRPC.
    fn watch(&self, key: String, id: String) -> BoxFuture<'static, Result<BoxStream<'static, Shown>, Denied>>;
}

/// An HTTP request.
#[derive(Debug, Clone)]
pub struct Request {
    /// `GET` or another word in capitals.
    pub method: &'static str,
    /// The path, with the query.
    pub path: String,
    /// Header names in lower case, and their values.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: Bytes,
    /// The other end of the connection.
    pub client: IpAddr,
}

/// The response to an HTTP request.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The status.
    pub status: u16,
    /// Header names in lower case, and their values.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Bytes,
}

impl Reply {
    /// Returns the first header of a name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// A gRPC call of a merchant.
#[derive(Debug, Clone)]
pub struct Call {
    /// The API key.
    pub key: String,
    /// The idempotency key.
    pub idempotency_key: Option<String>,
    /// The method, and its request.
    pub method: Method,
}

/// A method of the payments' service.
#[derive(Debug, Clone)]
pub enum Method {
    /// `CreatePayment`
    Create {
        /// The amount, in 1/1000.
        units: u64,
        /// `HIVE` or `HBD`.
        currency: &'static str,
        /// The description.
        description: String,
        /// The lifetime, seconds.
        expires_in_seconds: Option<u32>,
    },
    /// `GetPayment`
    Get(String),
    /// `ListPayments`, of the newest
    List,
    /// `CancelPayment`
    Cancel(String),
}

/// A payment as gRPC shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// Its id.
    pub id: String,
    /// Its state, as in the REST API.
    pub status: &'static str,
    /// The number of its state.
    pub sequence: u64,
    /// The amount, in 1/1000.
    pub units: u64,
}

/// Why gRPC refuses a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denied {
    /// The name of the code, such as `NotFound`.
    pub code: String,
    /// The reason, as in the REST API.
    pub reason: &'static str,
    /// After how many seconds a repeat may succeed.
    pub retry_after: Option<u32>,
}

static INSTALLED: OnceLock<&'static dyn Front> = OnceLock::new();

/// Installs the facade for simulations with `facade` in their setup; the first one stays.
pub fn install(front: &'static dyn Front) {
    // One process has one facade.
    let _ = INSTALLED.set(front);
}

/// Returns the installed facade.
pub(crate) fn installed() -> Option<&'static dyn Front> {
    INSTALLED.get().copied()
}
