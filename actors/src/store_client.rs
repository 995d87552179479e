//! The client of the store: retries while the store is unreachable, and resolves commits with unknown outcome.
//!
//! A read or a commit is retried for as long as the settings allow, counted from the beginning of the outage: later
//! calls fail at the first attempt, so that calls do not pile up. A commit with unknown outcome is resolved by a write
//! ([`Store::resolve`]): an applied one is a success, a forbidden one is committed again under another id. The store of
//! an exclusive engine is never temporarily unreachable: there an unknown outcome stops the process.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use engine::{mutant, time::Timestamp};
use futures_util::future::BoxFuture;
use prometheus_client::metrics::{counter::Counter, family::Family, gauge::Gauge};
use storage::{Batch, CommitError, CommitId, EngineId, Read, ReadError, Resolution, Store, Wrapped};
use tokio::time::Instant;

use crate::{context::Fatal, environment::Entropy};

/// Minimum and maximum backoff; each is drawn between half of it and all of it.
const FIRST_WAIT: Duration = Duration::from_millis(20);
const MAX_WAIT: Duration = Duration::from_secs(1);

/// Metrics of the store client.
#[derive(Debug, Clone, Default)]
pub(crate) struct StoreMetrics {
    pub(crate) unavailable: Gauge,
    pub(crate) retries: Counter,
    /// Commits with unknown outcome, by their resolution.
    pub(crate) resolved: Family<[(&'static str, &'static str); 1], Counter>,
}

impl StoreMetrics {
    /// Every outcome of a resolution.
    pub(crate) const OUTCOMES: [&str; 3] = ["applied", "forbidden", "unresolved"];

    fn resolved(&self, outcome: &'static str) {
        self.resolved.get_or_create(&[("outcome", outcome)]).inc();
    }
}

/// The client of the store.
pub(crate) struct StoreClient {
    inner: Arc<dyn Store>,
    entropy: Arc<dyn Entropy>,
    /// How long an operation is retried.
    timeout: Duration,
    /// `None` for an exclusive engine.
    ids: Option<CommitIds>,
    outage: Outage,
    fatal: Arc<Fatal>,
    metrics: StoreMetrics,
}

impl StoreClient {
    /// Wraps a store; `engine` is the id of an engine that shares it.
    pub(crate) fn new(
        inner: Arc<dyn Store>,
        entropy: Arc<dyn Entropy>,
        engine: Option<EngineId>,
        timeout: Duration,
        fatal: Arc<Fatal>,
        metrics: StoreMetrics,
    ) -> Self {
        let ids = engine.map(|engine| CommitIds { engine, last: AtomicU64::new(0) });
        Self { inner, entropy, timeout, ids, outage: Outage::default(), fatal, metrics }
    }

    /// Tries the store once; returns the duration of the outage if it still lasts.
    pub(crate) async fn probe(&self) -> Option<Duration> {
        match self.inner.epoch().await {
            Err(ReadError::Unavailable(why)) => Some(self.not_reached(&why).elapsed()),
            _ => {
                self.reached();
                None
            }
        }
    }

    /// Records that the store was unreachable; returns since when.
    fn not_reached(&self, why: &str) -> Instant {
        let (since, is_new) = self.outage.begin();
        if is_new {
            self.metrics.unavailable.set(1);
            tracing::warn!(why, "store unavailable: {why}");
        }
        since
    }

    async fn commit_alone(&self, batch: Batch) -> Result<(), CommitError> {
        let outcome = self.inner.commit(batch).await;
        if let Err(error @ CommitError::Unknown(_)) = &outcome {
            self.fatal.raise(error.to_string());
        }
        outcome
    }

    async fn commit_surely(&self, mut batch: Batch, ids: &CommitIds) -> Result<(), CommitError> {
        let mut retries = Retries::of(self);
        loop {
            let id = ids.next();
            batch.id = Some(id);
            match self.inner.commit(batch.clone()).await {
                Err(CommitError::Unavailable(why)) => {
                    if !retries.wait(&why).await {
                        return Err(CommitError::Unavailable(why));
                    }
                }
                Err(CommitError::Unknown(why)) => {
                    if mutant!("unknown-is-refused") {
                        return Err(CommitError::Unavailable(why));
                    }
                    if !mutant!("retry-without-forbidding") && self.resolve_in_time(id, &why, &mut retries).await? {
                        return Ok(());
                    }
                }
                outcome => {
                    self.reached();
                    return outcome;
                }
            }
        }
    }

    /// Returns whether a commit was applied; if not, it never will be.
    ///
    /// # Errors
    /// [`CommitError::Unknown`] if the store is unreachable for too long, or has failed permanently: then the process
    /// stops, because memory and disk may differ.
    async fn resolve_in_time(&self, id: CommitId, why: &str, retries: &mut Retries<'_>) -> Result<bool, CommitError> {
        loop {
            match self.inner.resolve(id).await {
                Ok(resolution) => {
                    self.reached();
                    let is_applied = resolution == Resolution::Applied;
                    self.metrics.resolved(if is_applied { "applied" } else { "forbidden" });
                    tracing::info!(%id, is_applied, why, "resolved a commit of unknown outcome: applied: {is_applied}");
                    return Ok(is_applied);
                }
                Err(CommitError::Unavailable(unavailable)) => {
                    if !retries.wait(&unavailable).await {
                        self.metrics.resolved("unresolved");
                        tracing::warn!(%id, why, "the outcome of a commit remains unknown: {why}");
                        return Err(CommitError::Unknown(why.to_owned()));
                    }
                }
                Err(error) => {
                    self.fatal.raise(error.to_string());
                    return Err(error);
                }
            }
        }
    }

    fn reached(&self) {
        if let Some(lasted) = self.outage.end() {
            self.metrics.unavailable.set(0);
            let seconds = lasted.as_secs();
            tracing::info!(seconds, "store available again after {seconds} s");
        }
    }
}

impl Wrapped for StoreClient {
    type Inner = dyn Store;

    fn inner(&self) -> &dyn Store {
        &*self.inner
    }

    fn around<'a, T, R>(&'a self, _name: &'static str, read: R) -> Read<'a, T>
    where
        T: Send + 'a,
        R: Fn() -> Read<'a, T> + Send + Sync + 'a,
    {
        Box::pin(async move {
            let mut retries = Retries::of(self);
            loop {
                match read().await {
                    Err(ReadError::Unavailable(why)) => {
                        if !retries.wait(&why).await {
                            return Err(ReadError::Unavailable(why));
                        }
                    }
                    answer => {
                        self.reached();
                        return answer;
                    }
                }
            }
        })
    }
}

impl Store for StoreClient {
    fn commit(&self, batch: Batch) -> BoxFuture<'_, Result<(), CommitError>> {
        match &self.ids {
            Some(ids) => Box::pin(self.commit_surely(batch, ids)),
            None => Box::pin(self.commit_alone(batch)),
        }
    }

    fn resolve(&self, id: CommitId) -> BoxFuture<'_, Result<Resolution, CommitError>> {
        self.inner.resolve(id)
    }

    fn is_shared(&self) -> bool {
        self.inner.is_shared()
    }

    fn damaged_rows(&self) -> u64 {
        self.inner.damaged_rows()
    }

    fn index_search(&self, now: Timestamp, max: usize) -> BoxFuture<'_, Result<usize, CommitError>> {
        self.inner.index_search(now, max)
    }
}

/// The commit ids of an engine: its own id, and an increasing number.
struct CommitIds {
    engine: EngineId,
    last: AtomicU64,
}

impl CommitIds {
    fn next(&self) -> CommitId {
        let number = self.last.fetch_add(1, Ordering::Relaxed);
        CommitId::from_bits(u128::from(self.engine.bits()) << 64 | u128::from(number))
    }
}

/// The beginning of the outage.
#[derive(Default)]
struct Outage {
    /// Whether there is an outage; read for every operation.
    is_on: AtomicBool,
    since: Mutex<Option<Instant>>,
}

impl Outage {
    /// Records that the store was unreachable; returns since when, and whether that is new.
    fn begin(&self) -> (Instant, bool) {
        let mut since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = since.is_none();
        let since = *since.get_or_insert_with(Instant::now);
        self.is_on.store(true, Ordering::Release);
        (since, is_new)
    }

    /// Records that the store was reached; returns the duration of an outage that ended.
    fn end(&self) -> Option<Duration> {
        if !self.is_on.load(Ordering::Acquire) {
            return None;
        }
        let mut since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_on.store(false, Ordering::Release);
        since.take().map(|since| since.elapsed())
    }
}

/// The retries of one operation.
struct Retries<'c> {
    client: &'c StoreClient,
    began: Instant,
    wait: Duration,
}

impl<'c> Retries<'c> {
    fn of(client: &'c StoreClient) -> Self {
        Self { client, began: Instant::now(), wait: FIRST_WAIT }
    }

    /// Waits before the next attempt; returns whether there may be one.
    async fn wait(&mut self, why: &str) -> bool {
        let client = self.client;
        let since = client.not_reached(why);
        let until = self.began.min(since) + client.timeout;
        let random = u32::from(u16::from_be_bytes(client.entropy.bytes()));
        let wait = self.wait / 2 + self.wait / 2 * random / u32::from(u16::MAX);
        if Instant::now() + wait > until {
            return false;
        }
        self.wait = (self.wait * 2).min(MAX_WAIT);
        client.metrics.retries.inc();
        tokio::time::sleep(wait).await;
        true
    }
}
