//! What the actors of one tree share: the environment, the settings, where the ledger stands, and how to give up.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, PoisonError, RwLock,
        atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use engine::{
    account::AccountName,
    hive::ChainId,
    ledger::Head,
    money::FeePercent,
    payment::{ClaimFinality, FeeMode, Rate},
    time::Timestamp,
};
use storage::{CommitError, ReadError};
use tokio::sync::Notify;

use crate::{accounts::Accounts, environment::Environment, nodes::Nodes};

/// How an engine is set up.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The chain it serves.
    pub chain_id: ChainId,
    /// Whether a development ledger is what we want: its payments carry `livemode: false`.
    pub development: bool,
    /// The service's fee.
    pub fee_percent: FeePercent,
    /// How the fee is taken.
    pub fee_mode: FeeMode,
    /// How long a session lives where its creator does not say.
    pub session_lifetime: Duration,
    /// How much later than its expiry a session's block may be.
    pub session_grace: Duration,
    /// Sessions kept awake; the rest are parked and reborn when spoken to.
    pub max_awake: usize,
    /// How often the nodes are asked for their head.
    pub poll_interval: Duration,
    /// How many nodes must agree on an irreversible block; 0 for one of up to two nodes, two of more.
    pub min_agreeing_nodes: usize,
    /// How far ahead of our clock a head block may be; none to believe any (a development chain whose time is moved).
    pub max_head_ahead: Option<Duration>,
    /// How often the price of HIVE is read.
    pub rate_interval: Duration,
    /// What the webhook headers start with, such as `X-Hivetill`.
    pub webhook_header_prefix: String,
    /// How long one attempt may take.
    pub webhook_timeout: Duration,
    /// Whether webhooks may go to plain http.
    pub allow_insecure_webhooks: bool,
    /// How agents' payments are taken.
    pub x402: X402Settings,
    /// Calls that may wait at the handle at once; the rest are turned away.
    pub max_waiting_calls: usize,
}

impl Settings {
    /// Returns the settings of a chain, everything else as documented.
    #[must_use]
    pub fn of(chain_id: ChainId) -> Self {
        Self {
            chain_id,
            development: false,
            fee_percent: FeePercent::ZERO,
            fee_mode: FeeMode::Invoice,
            session_lifetime: Duration::from_secs(1_800),
            session_grace: Duration::ZERO,
            max_awake: 5_000,
            poll_interval: Duration::from_secs(1),
            min_agreeing_nodes: 0,
            max_head_ahead: Some(Duration::from_secs(30)),
            rate_interval: Duration::from_secs(600),
            webhook_header_prefix: "X-Hivetill".to_owned(),
            webhook_timeout: Duration::from_secs(10),
            allow_insecure_webhooks: false,
            x402: X402Settings::default(),
            max_waiting_calls: 4_096,
        }
    }
}

/// How agents' payments are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct X402Settings {
    /// How far ahead a transaction's expiration may be: as long as that, its outcome may be open.
    pub max_expiration: Duration,
    /// What a payment of ordinary size completes on.
    pub finality: ClaimFinality,
    /// From this worth on, in US cents, a payment completes only on an irreversible block.
    pub irreversible_from_cents: u64,
    /// Whether requirements of other servers are taken only for accounts of merchants here.
    pub only_registered: bool,
}

impl Default for X402Settings {
    fn default() -> Self {
        Self {
            max_expiration: Duration::from_secs(3_600),
            finality: ClaimFinality::InBlock,
            irreversible_from_cents: 100_000,
            only_registered: false,
        }
    }
}

impl X402Settings {
    /// Returns what a payment of this worth completes on.
    pub(crate) fn finality_of(&self, usd_cents: u64) -> ClaimFinality {
        if usd_cents >= self.irreversible_from_cents { ClaimFinality::Irreversible } else { self.finality }
    }
}

/// What the actors of one tree share.
pub(crate) struct Context {
    pub(crate) env: Environment,
    pub(crate) settings: Settings,
    pub(crate) nodes: Nodes,
    pub(crate) accounts: Accounts,
    pub(crate) ledger: LedgerView,
    pub(crate) watched: Watched,
    pub(crate) rate: Mutex<Option<Rate>>,
    /// Rung when the outbox has something new.
    pub(crate) outbox_bell: Notify,
    /// Subscriptions to payments, anywhere in the tree.
    pub(crate) subscriptions: AtomicUsize,
    /// Payments opened through this engine.
    pub(crate) opened: AtomicU64,
    pub(crate) fatal: Fatal,
}

impl Context {
    pub(crate) fn new(env: Environment, settings: Settings) -> Arc<Self> {
        let nodes = Nodes::new(&env, &settings);
        Arc::new(Self {
            env,
            settings,
            nodes,
            accounts: Accounts::default(),
            ledger: LedgerView::default(),
            watched: Watched::default(),
            rate: Mutex::new(None),
            outbox_bell: Notify::new(),
            subscriptions: AtomicUsize::new(0),
            opened: AtomicU64::new(0),
            fatal: Fatal::default(),
        })
    }

    /// Returns the engine's time: the later of the wall clock and the newest head block.
    pub(crate) fn now(&self) -> Timestamp {
        self.env.clock.now().max(self.ledger.head_time())
    }

    pub(crate) fn rate(&self) -> Option<Rate> {
        *self.rate.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_rate(&self, rate: Rate) {
        *self.rate.lock().unwrap_or_else(PoisonError::into_inner) = Some(rate);
    }

    /// Notes a failed read. A disk that cannot be read stops the engine; a damaged record stops only who needs it.
    pub(crate) fn read_failed(&self, error: &ReadError) {
        match error {
            ReadError::Failed(_) => self.fatal.raise(error.to_string()),
            ReadError::Damaged { .. } => tracing::error!(%error, "{error}"),
        }
    }

    /// Notes a commit whose outcome is unknown: memory must not argue with disk, so the process has to stop.
    pub(crate) fn give_up_on(&self, error: &CommitError) {
        if matches!(error, CommitError::Unknown(_)) {
            self.fatal.raise(error.to_string());
        }
    }
}

/// Where the ledger stands, as the scanner last saw it.
#[derive(Debug, Default)]
pub(crate) struct LedgerView {
    head_time_ms: AtomicU64,
    head_num: AtomicU32,
    irreversible_time_ms: AtomicU64,
    irreversible_num: AtomicU32,
    chain_irreversible_num: AtomicU32,
    is_reachable: AtomicBool,
    has_cursor: AtomicBool,
}

impl LedgerView {
    pub(crate) fn saw_head(&self, head: Head) {
        self.head_time_ms.fetch_max(head.time.millis(), Ordering::Relaxed);
        self.head_num.store(head.block_id.number(), Ordering::Relaxed);
        self.chain_irreversible_num.fetch_max(head.irreversible_num, Ordering::Relaxed);
        self.is_reachable.store(true, Ordering::Relaxed);
    }

    pub(crate) fn lost_contact(&self) {
        self.is_reachable.store(false, Ordering::Relaxed);
    }

    /// Notes that every block up to this one has been read and its credits are durable.
    pub(crate) fn read_up_to(&self, num: u32, time: Timestamp) {
        self.irreversible_num.fetch_max(num, Ordering::Relaxed);
        self.irreversible_time_ms.fetch_max(time.millis(), Ordering::Relaxed);
        self.has_cursor.store(true, Ordering::Release);
    }

    pub(crate) fn head_time(&self) -> Timestamp {
        Timestamp::from_millis(self.head_time_ms.load(Ordering::Relaxed))
    }

    pub(crate) fn irreversible_time(&self) -> Timestamp {
        Timestamp::from_millis(self.irreversible_time_ms.load(Ordering::Relaxed))
    }

    /// Says whether the chain is being read from a known block on: before that, a payment could be overlooked.
    pub(crate) fn is_followed(&self) -> bool {
        self.has_cursor.load(Ordering::Acquire)
    }

    pub(crate) fn status(&self) -> LedgerStatus {
        LedgerStatus {
            is_reachable: self.is_reachable.load(Ordering::Relaxed),
            head_num: self.head_num.load(Ordering::Relaxed),
            head_time: self.head_time(),
            irreversible_num: self.chain_irreversible_num.load(Ordering::Relaxed),
            scanned_num: self.irreversible_num.load(Ordering::Relaxed),
        }
    }
}

/// Where the ledger stands and how far it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LedgerStatus {
    /// Whether a node answered when last asked.
    pub is_reachable: bool,
    /// The newest block's number.
    pub head_num: u32,
    /// The newest block's time.
    pub head_time: Timestamp,
    /// The newest irreversible block's number.
    pub irreversible_num: u32,
    /// The newest block whose transfers are all credited.
    pub scanned_num: u32,
}

/// The accounts whose transfers concern us. It only grows.
#[derive(Debug, Default)]
pub(crate) struct Watched(RwLock<BTreeSet<AccountName>>);

impl Watched {
    pub(crate) fn contains(&self, account: &AccountName) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).contains(account)
    }

    pub(crate) fn extend(&self, accounts: impl IntoIterator<Item = AccountName>) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).extend(accounts);
    }
}

/// The end of a process that must not go on.
#[derive(Debug, Default)]
pub(crate) struct Fatal {
    why: Mutex<Option<String>>,
    raised: Notify,
}

impl Fatal {
    pub(crate) fn raise(&self, why: String) {
        tracing::error!(%why, "the engine cannot go on: {why}");
        self.why.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
        self.raised.notify_one();
    }

    pub(crate) async fn raised(&self) -> String {
        loop {
            let seen = self.why.lock().unwrap_or_else(PoisonError::into_inner).clone();
            match seen {
                Some(why) => return why,
                None => self.raised.notified().await,
            }
        }
    }
}
