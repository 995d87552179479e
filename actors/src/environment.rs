//! Everything that is not decided by the code: time, randomness, the ledger, the store, the merchants' endpoints.
//!
//! A simulation is the same tree of actors with another [`Environment`].

use std::{fmt, sync::Arc, time::Duration};

use engine::{
    account::AccountName,
    hive::{Authority, ChainId},
    ids::{DeliveryId, EventId, KeyId, MerchantId, PaymentId, SlugToken},
    ledger::{Block, Head, Transfer, TxId, VirtualOperations},
    money::{HbdPrice, HivePrice, Money},
    time::Timestamp,
    webhook::Outcome,
};
use futures_util::future::BoxFuture;
use storage::Store;
use tokio::time::Instant;

/// The seams of the engine.
#[derive(Clone)]
pub struct Environment {
    /// The wall clock. Waiting is tokio's, which can be paused.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub entropy: Arc<dyn Entropy>,
    /// What survives a restart.
    pub store: Arc<dyn Store>,
    /// The ledger's nodes. Their order decides nothing but which of several equally healthy ones are asked for blocks.
    pub nodes: Vec<Arc<dyn Node>>,
    /// The way to the merchants' endpoints.
    pub webhooks: Arc<dyn WebhookTransport>,
    /// Where the code tells how far it came.
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

    /// Returns the present instant of a clock that never jumps: leases are counted by it.
    fn monotonic(&self) -> Instant {
        Instant::now()
    }
}

/// A source of randomness fit for keys.
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

    /// Returns a new event id; events of payments have ids that follow from theirs.
    #[must_use]
    pub fn event_id(&self, now: Timestamp) -> EventId {
        EventId::new(now, self.bytes())
    }

    /// Returns a new delivery id.
    #[must_use]
    pub fn delivery_id(&self, now: Timestamp) -> DeliveryId {
        DeliveryId::new(now, self.bytes())
    }

    /// Returns the secret half of a new checkout address.
    #[must_use]
    pub fn slug(&self) -> SlugToken {
        SlugToken::from_bits(u128::from_be_bytes(self.bytes()))
    }
}

/// A place in the code that a run can be made to notice: to count, to wait, to fail.
pub trait Probe: Send + Sync + 'static {
    /// Is told that `point` was reached.
    fn reach(&self, point: &'static str);
}

/// The probe of production: notices nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoProbe;

impl Probe for NoProbe {
    fn reach(&self, _point: &'static str) {}
}

/// The answer of a node.
pub type Answer<'a, T> = BoxFuture<'a, Result<T, NodeError>>;

/// One node of the ledger. It may be slow, behind, wrong or lying; what to make of it is decided above.
pub trait Node: Send + Sync + 'static {
    /// Returns the node's name for logs.
    fn name(&self) -> &str;

    /// Returns which chain it serves.
    fn identity(&self) -> Answer<'_, Identity>;

    /// Returns where it says the chain stands.
    fn head(&self) -> Answer<'_, Head>;

    /// Returns up to `count` blocks from number `from` on; fewer at its head.
    fn blocks(&self, from: u32, count: u32) -> Answer<'_, Vec<Block>>;

    /// Returns what an irreversible block's virtual operations paid: recurrent transfers, and what left savings; none of a
    /// block that it does not have, or not as an irreversible one. A node that keeps no account history refuses.
    fn virtual_operations(&self, block_num: u32) -> Answer<'_, Option<VirtualOperations>>;

    /// Returns the transfers from and to an account, and the releases from escrow to it, of irreversible blocks from
    /// `span.0` up to but without `span.1`, in any order. A node that keeps no account history refuses.
    fn history(&self, account: AccountName, span: (Timestamp, Timestamp)) -> Answer<'_, Vec<Transfer>>;

    /// Returns those of the accounts that exist.
    fn accounts(&self, names: Vec<AccountName>) -> Answer<'_, Vec<Account>>;

    /// Returns what it knows of a transaction.
    fn find_transaction(&self, tx_id: TxId, expiration: Timestamp) -> Answer<'_, TxStatus>;

    /// Hands it a signed transaction (JSON of either form). `Ok` means it is in the node's mempool, no more.
    fn broadcast(&self, signed_json: String) -> Answer<'_, ()>;

    /// Returns the witnesses' price of HIVE; none on a chain without feeds.
    fn price(&self) -> Answer<'_, Option<HivePrice>>;

    /// Returns the price of HBD on the internal market; none where the market makes none.
    fn hbd_price(&self) -> Answer<'_, Option<HbdPrice>>;
}

/// Which chain a node serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The chain.
    pub chain_id: ChainId,
    /// What the node calls itself.
    pub version: String,
    /// Whether it is a development ledger: its money is play money, whatever the chain id.
    pub is_development: bool,
}

/// An account as a node describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Its name.
    pub name: AccountName,
    /// Who may move its money.
    pub active: Authority,
    /// Its liquid balances, HIVE then HBD.
    pub balances: [Money; 2],
}

/// What a node knows of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TxStatus {
    /// Nothing.
    Unknown,
    /// It waits to be put into a block.
    InMempool,
    /// It is in a block that can still change.
    InReversibleBlock(u32),
    /// It is in a block that cannot change.
    InIrreversibleBlock(u32),
    /// It expired, but a fork could still bring it.
    ExpiredReversible,
    /// It expired and will never be in a block.
    ExpiredIrreversible,
    /// It is older than the node remembers.
    TooOld,
}

/// Why a node gave no answer, or refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NodeError {
    /// No answer in time.
    #[error("timed out")]
    Timeout,
    /// No connection could be made: nothing was sent.
    #[error("cannot be reached: {0}")]
    Unreachable(String),
    /// The connection broke: what was sent may have arrived.
    #[error("the connection broke: {0}")]
    Broken(String),
    /// An HTTP status other than 200.
    #[error("responded with HTTP {0}")]
    Http(u16),
    /// It refuses more requests for a while: HTTP 429, or 503 with `Retry-After`.
    #[error("limits the rate of requests")]
    RateLimited {
        /// How long it asks to be left alone, if it says so.
        retry_after: Option<Duration>,
    },
    /// An answer that is not what was asked for.
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
    /// Says whether the node does not serve the API or the method: it is set up without it, and otherwise well.
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

    /// Says whether another node may do better: anything but a refusal by the ledger's own rules.
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
    /// Where to.
    pub url: String,
    /// Header names and values, in order.
    pub headers: Vec<(String, String)>,
    /// The body, byte for byte.
    pub body: Vec<u8>,
    /// How long the whole exchange may take.
    pub timeout: Duration,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookResponse {
    /// How it ended.
    pub outcome: Outcome,
    /// The start of the answer's body, at most 1 KiB.
    pub snippet: String,
}

/// Posts webhooks: follows no redirect, uses no proxy, keeps no cookies.
pub trait WebhookTransport: Send + Sync + 'static {
    /// Posts one request.
    fn post(&self, request: WebhookRequest) -> BoxFuture<'_, WebhookResponse>;

    /// Says whether a URL could be posted to at all, as far as it shows without asking anybody.
    fn accepts(&self, _url: &str) -> bool {
        true
    }
}
