//! The inputs and outputs of the engine: time, randomness, the ledger, the store, webhook endpoints.
//!
//! A simulation is the same tree of actors with another [`Environment`].

use std::{fmt, sync::Arc, time::Duration};

use engine::{
    account::AccountName,
    hive::{Authority, ChainId},
    ids::{DeliveryId, EndpointId, EventId, KeyId, MerchantId, PaymentId, SlugToken},
    ledger::{Block, Head, Transfer, TxId, VirtualOperations},
    money::{HbdPrice, HivePrice, Money},
    time::Timestamp,
    webhook::Outcome,
};
use futures_util::future::BoxFuture;
use storage::Store;
use tokio::time::Instant;

/// The environment of the engine.
#[derive(Clone)]
pub struct Environment {
    /// The wall clock. Delays use tokio's clock, which can be paused.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub entropy: Arc<dyn Entropy>,
    /// The durable store.
    pub store: Arc<dyn Store>,
    /// The ledger nodes. Their order decides only which of several equally healthy ones serves blocks.
    pub nodes: Vec<Arc<dyn Node>>,
    /// The transport of webhooks.
    pub webhooks: Arc<dyn WebhookTransport>,
    /// The probe that is notified of points in the code.
    pub probe: Arc<dyn Probe>,
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment").field("nodes", &self.nodes.len()).finish_non_exhaustive()
    }
}

/// The wall clock.
pub trait Clock: Send + Sync + 'static {
    /// Returns the present time.
    fn now(&self) -> Timestamp;

    /// Returns the present instant of a monotonic clock, from which leases are counted.
    fn monotonic(&self) -> Instant {
        Instant::now()
    }
}

/// A cryptographically secure source of randomness.
pub trait Entropy: Send + Sync + 'static {
    /// Fills `out`.
    fn fill(&self, out: &mut [u8]);
}

impl dyn Entropy {
    /// Returns `N` random bytes.
    #[must_use]
    pub fn bytes<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        self.fill(&mut bytes);
        bytes
    }

    /// Returns a new payment id.
    #[must_use]
    pub fn payment_id(&self, now: Timestamp) -> PaymentId {
        PaymentId::new(now, self.bytes())
    }

    /// Returns a new merchant id.
    #[must_use]
    pub fn merchant_id(&self, now: Timestamp) -> MerchantId {
        MerchantId::new(now, self.bytes())
    }

    /// Returns a new key record's id.
    #[must_use]
    pub fn key_id(&self, now: Timestamp) -> KeyId {
        KeyId::new(now, self.bytes())
    }

    /// Returns a new event id; ids of payment events are derived from the payment.
    #[must_use]
    pub fn event_id(&self, now: Timestamp) -> EventId {
        EventId::new(now, self.bytes())
    }

    /// Returns a new id of a webhook endpoint.
    #[must_use]
    pub fn endpoint_id(&self, now: Timestamp) -> EndpointId {
        EndpointId::new(now, self.bytes())
    }

    /// Returns a new delivery id.
    #[must_use]
    pub fn delivery_id(&self, now: Timestamp) -> DeliveryId {
        DeliveryId::new(now, self.bytes())
    }

    /// Returns the secret part of a new checkout URL.
    #[must_use]
    pub fn slug(&self) -> SlugToken {
        SlugToken::from_bits(u128::from_be_bytes(self.bytes()))
    }
}

/// An observer of points in the code, at which a simulation can count, wait or fail.
pub trait Probe: Send + Sync + 'static {
    /// Called when `point` is reached.
    fn reach(&self, point: &'static str);
}

/// The probe of production, without effect.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoProbe;

impl Probe for NoProbe {
    fn reach(&self, _point: &'static str) {}
}

/// The response of a node.
pub type NodeResponse<'a, T> = BoxFuture<'a, Result<T, NodeError>>;

/// One node of the ledger. It may be slow, behind, wrong or malicious; callers decide what to trust.
pub trait Node: Send + Sync + 'static {
    /// Returns the node's name for logs.
    fn name(&self) -> &str;

    /// Returns the chain that it serves.
    fn identity(&self) -> NodeResponse<'_, Identity>;

    /// Returns the head of its chain.
    fn head(&self) -> NodeResponse<'_, Head>;

    /// Returns up to `count` blocks from number `from` on; fewer at its head.
    fn blocks(&self, from: u32, count: u32) -> NodeResponse<'_, Vec<Block>>;

    /// Returns the transfers of an irreversible block's virtual operations: recurrent transfers and withdrawals from
    /// savings; `None` if it does not have the block as irreversible. A node without account history refuses.
    fn virtual_operations(&self, block_num: u32) -> NodeResponse<'_, Option<VirtualOperations>>;

    /// Returns the transfers from and to an account, and the releases from escrow to it, of irreversible blocks in
    /// `span.0..span.1`, in any order. A node without account history refuses.
    fn history(&self, account: AccountName, span: (Timestamp, Timestamp)) -> NodeResponse<'_, Vec<Transfer>>;

    /// Returns those of the accounts that exist.
    fn accounts(&self, names: Vec<AccountName>) -> NodeResponse<'_, Vec<Account>>;

    /// Returns the status of a transaction.
    fn find_transaction(&self, tx_id: TxId, expiration: Timestamp) -> NodeResponse<'_, TxStatus>;

    /// Broadcasts a signed transaction (JSON of either form). `Ok` means only that it is in the node's mempool.
    fn broadcast(&self, signed_json: String) -> NodeResponse<'_, ()>;

    /// Returns the witnesses' price of HIVE; `None` on a chain without feeds.
    fn price(&self) -> NodeResponse<'_, Option<HivePrice>>;

    /// Returns the price of HBD on the internal market; `None` if there is none.
    fn hbd_price(&self) -> NodeResponse<'_, Option<HbdPrice>>;
}

/// The identity of a node's chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The chain.
    pub chain_id: ChainId,
    /// The version that the node reports.
    pub version: String,
    /// Whether it is a development ledger without real money, whatever the chain id.
    pub is_development: bool,
}

/// An account as a node describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Its name.
    pub name: AccountName,
    /// Its active authority.
    pub active: Authority,
    /// Its liquid balances, HIVE then HBD.
    pub balances: [Money; 2],
}

/// The status of a transaction on a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TxStatus {
    /// Unknown.
    Unknown,
    /// In the mempool.
    InMempool,
    /// In a reversible block.
    InReversibleBlock(u32),
    /// In an irreversible block.
    InIrreversibleBlock(u32),
    /// Expired, but a fork could still include it.
    ExpiredReversible,
    /// Expired and never included.
    ExpiredIrreversible,
    /// Older than the node's history.
    TooOld,
}

/// Why a node did not respond, or refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NodeError {
    /// No response in time.
    #[error("timed out")]
    Timeout,
    /// No connection was established: nothing was sent.
    #[error("cannot be reached: {0}")]
    Unreachable(String),
    /// The connection was lost: the request may have arrived.
    #[error("the connection broke: {0}")]
    Broken(String),
    /// An HTTP status other than 200.
    #[error("responded with HTTP {0}")]
    Http(u16),
    /// The node limits the rate: HTTP 429, or 503 with `Retry-After`.
    #[error("limits the rate of requests")]
    RateLimited {
        /// The requested backoff, if there is one.
        retry_after: Option<Duration>,
    },
    /// A response that does not match the request.
    #[error("sent an unreadable response: {0}")]
    Unreadable(String),
    /// A JSON-RPC error.
    #[error("refused: {message}")]
    Rpc {
        /// JSON-RPC code.
        code: i64,
        /// hived's own code (`data.code`), such as 3010000.
        data_code: Option<i64>,
        /// hived's own name (`data.name`).
        name: String,
        /// The message.
        message: String,
    },
    /// It serves another chain.
    #[error("serves another chain: {0}")]
    WrongChain(String),
}

impl NodeError {
    /// Returns whether the node does not serve the API or the method, but is otherwise healthy.
    #[must_use]
    pub fn lacks_api(&self) -> bool {
        match self {
            Self::Rpc { code, data_code, message, .. } => {
                *code == -32601
                    || (data_code.is_none()
                        && (message.contains("Could not find API") || message.contains("Could not find method")))
            }
            _ => false,
        }
    }

    /// Returns whether another node may succeed: on any error except a refusal by the ledger's rules.
    #[must_use]
    pub fn is_the_nodes_fault(&self) -> bool {
        match self {
            // Method or API not found, internal errors: this node's configuration, not our request.
            Self::Rpc { code, data_code, message, .. } => {
                matches!(code, -32601 | -32603) || (data_code.is_none() && message.contains("Could not find"))
            }
            _ => true,
        }
    }
}

/// A request to a merchant's endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookRequest {
    /// The URL.
    pub url: String,
    /// Header names and values, in order.
    pub headers: Vec<(String, String)>,
    /// The body, byte for byte.
    pub body: Vec<u8>,
    /// Timeout of the whole exchange.
    pub timeout: Duration,
}

/// The result of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookResponse {
    /// The outcome.
    pub outcome: Outcome,
    /// The start of the response's body, at most 1 KiB.
    pub snippet: String,
}

/// Sends webhooks: follows no redirect, uses no proxy, stores no cookies.
pub trait WebhookTransport: Send + Sync + 'static {
    /// Sends one request.
    fn post(&self, request: WebhookRequest) -> BoxFuture<'_, WebhookResponse>;

    /// Returns whether a URL is permitted, without resolving its name.
    fn accepts(&self, _url: &str) -> bool {
        true
    }
}
