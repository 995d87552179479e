//! What the actors of one tree share: the environment, the settings, where the ledger stands, and how to give up.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, PoisonError, RwLock,
        atomic::{AtomicU64, AtomicUsize},
    },
};

use engine::{account::AccountName, money::HbdPrice, mutant, payment::Rate, time::Timestamp};
use storage::{CommitError, ReadError};
use tokio::sync::Notify;

use crate::{
    chain::{accounts::Accounts, clock_watch::ClockWatch, ledger_view::LedgerView, nodes::Nodes},
    environment::Environment,
    metrics::Metrics,
    settings::Settings,
    webhooks::events::EventBells,
};

/// What the actors of one tree share.
pub(crate) struct Context {
    pub(crate) env: Environment,
    pub(crate) settings: Settings,
    pub(crate) nodes: Nodes,
    pub(crate) accounts: Accounts,
    pub(crate) ledger: LedgerView,
    pub(crate) watched: Watched,
    /// Log lines about transfers between accounts of nobody here.
    pub(crate) elsewhere: crate::payments::transfer_log::Elsewhere,
    pub(crate) rate: Mutex<Option<Rate>>,
    /// Rung when the outbox has something new.
    pub(crate) outbox_bell: Notify,
    /// Rung when a merchant has a new event.
    pub(crate) event_bells: EventBells,
    /// Subscriptions to payments, anywhere in the tree.
    pub(crate) subscriptions: AtomicUsize,
    /// Payments opened through this engine.
    pub(crate) opened: AtomicU64,
    pub(crate) metrics: Metrics,
    pub(crate) clock_watch: ClockWatch,
    pub(crate) fatal: Fatal,
}

impl Context {
    pub(crate) fn new(env: Environment, settings: Settings) -> Arc<Self> {
        let metrics = Metrics::default();
        let nodes = Nodes::new(&env, &settings, &metrics);
        Arc::new(Self {
            env,
            settings,
            nodes,
            accounts: Accounts::default(),
            ledger: LedgerView::default(),
            watched: Watched::default(),
            elsewhere: crate::payments::transfer_log::Elsewhere::default(),
            rate: Mutex::new(None),
            outbox_bell: Notify::new(),
            event_bells: EventBells::default(),
            subscriptions: AtomicUsize::new(0),
            opened: AtomicU64::new(0),
            metrics,
            clock_watch: ClockWatch::default(),
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

    /// Returns what new payments are valued with. HBD counts as one dollar within the bounds of its peg: the price is left out.
    pub(crate) fn quoting_rate(&self) -> Option<Rate> {
        let is_off = |price: &HbdPrice| !price.is_within(self.settings.hbd_peg.percent);
        let rate = self.rate()?;
        Some(Rate { hbd: rate.hbd.filter(is_off).filter(|_| !mutant!("hbd-is-always-a-dollar")), ..rate })
    }

    pub(crate) fn set_rate(&self, rate: Rate) {
        *self.rate.lock().unwrap_or_else(PoisonError::into_inner) = Some(rate);
    }

    /// Logs and counts a jump of the wall clock since this was last called.
    pub(crate) fn watch_clock(&self) {
        if let Some(jump) = self.clock_watch.look(self.env.clock.now()) {
            self.metrics.clock_jumps.inc();
            let (seconds, way) = (jump.by.as_secs(), if jump.is_back { "back" } else { "ahead" });
            tracing::warn!(seconds, way, "system clock jumped {way} by {seconds} s: check time synchronization");
        }
    }

    /// Notes a failed read. A disk that cannot be read stops the engine; a damaged row stops only who needs it, and the
    /// store has logged it.
    pub(crate) fn read_failed(&self, error: &ReadError) {
        match error {
            ReadError::Failed(_) if mutant!("read-error-ignored") => {}
            ReadError::Failed(_) => self.fatal.raise(error.to_string()),
            ReadError::Damaged { .. } if mutant!("damaged-row-is-fatal") => self.fatal.raise(error.to_string()),
            ReadError::Damaged { .. } => tracing::debug!(%error, "{error}"),
        }
    }

    /// Passes over a damaged row; a disk that cannot be read stops the engine.
    pub(crate) fn sound<T>(&self, read: Result<T, ReadError>) -> Result<Option<T>, ReadError> {
        match read {
            Ok(row) => Ok(Some(row)),
            Err(ReadError::Damaged { .. }) if !mutant!("damaged-row-holds-up") => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Notes a commit whose outcome is unknown: memory must not argue with disk, so the process has to stop.
    pub(crate) fn give_up_on(&self, error: &CommitError) {
        if matches!(error, CommitError::Unknown(_)) {
            self.fatal.raise(error.to_string());
        }
    }
}

/// The accounts whose transfers concern us.
#[derive(Debug, Default)]
pub(crate) struct Watched(RwLock<BTreeSet<AccountName>>);

impl Watched {
    pub(crate) fn contains(&self, account: &AccountName) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).contains(account)
    }

    pub(crate) fn remove(&self, account: &AccountName) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(account);
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
        let mut first = self.why.lock().unwrap_or_else(PoisonError::into_inner);
        // Everything that is under way fails for the same reason; it is said once.
        if first.is_none() {
            tracing::error!(%why, "engine shuts down: {why}");
            *first = Some(why);
        }
        drop(first);
        self.raised.notify_waiters();
    }

    /// Waits until the engine cannot go on; any number may wait.
    pub(crate) async fn raised(&self) -> String {
        loop {
            let raised = self.raised.notified();
            let seen = self.why.lock().unwrap_or_else(PoisonError::into_inner).clone();
            match seen {
                Some(why) => return why,
                None => raised.await,
            }
        }
    }
}
