//! The store that several engines share, and an engine's client of it: commits and reads cross a network, whose
//! connections break. A commit whose connection breaks is applied, dropped, or applied later, and its engine learns nothing.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, Weak},
};

use engine::time::Timestamp;
use futures_util::future::BoxFuture;
use storage::{Batch, CommitError, CommitId, Duty, EmbeddedStore, Read, ReadError, Resolution, Store, Wrapped, Write};
use tokio::sync::oneshot;

use crate::{
    options::Fault,
    script::{CommitOutcome, Peer},
    simulation::{Seam, Simulation},
    sync::lock,
    trace::Source,
};

/// The store that several engines share.
pub(crate) struct SharedStore {
    sim: Weak<Simulation>,
    rows: Arc<EmbeddedStore>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    waiting: Vec<Waiting>,
    is_writing: bool,
    /// Until when it fails over, virtual milliseconds.
    away_until_ms: u64,
    /// How often it failed over: a connection belongs to one primary.
    failovers: u64,
    /// The outcome of the next commit of an engine, where it is chosen.
    broken: BTreeMap<usize, CommitOutcome>,
    /// When commits are applied that the store executes though their connection is broken, virtual milliseconds.
    running: BTreeMap<CommitId, u64>,
}

/// A commit that has reached the store.
struct Waiting {
    batch: Batch,
    failovers: u64,
    answer: oneshot::Sender<Option<Result<(), CommitError>>>,
}

impl SharedStore {
    pub(crate) fn new(sim: &Arc<Simulation>, rows: &Arc<EmbeddedStore>) -> Arc<Self> {
        Arc::new(Self { sim: Arc::downgrade(sim), rows: Arc::clone(rows), state: Mutex::default() })
    }

    /// Returns its rows, without a network.
    pub(crate) fn rows(&self) -> Arc<EmbeddedStore> {
        Arc::clone(&self.rows)
    }

    /// Fails over to the standby: the store is unreachable meanwhile. Of the unconfirmed commits the newest are
    /// dropped; their number is drawn.
    pub(crate) fn fail_over(&self, until_ms: u64, drops: impl Fn(usize) -> usize) {
        let mut state = lock(&self.state);
        state.failovers += 1;
        state.away_until_ms = state.away_until_ms.max(until_ms);
        let dropped = drops(state.waiting.len());
        let kept = state.waiting.len() - dropped;
        for waiting in state.waiting.drain(kept..) {
            let _ = waiting.answer.send(None);
        }
    }

    /// Ends its faults.
    pub(crate) fn heal(&self) {
        let mut state = lock(&self.state);
        state.away_until_ms = 0;
        state.broken.clear();
    }

    /// Chooses the outcome of an engine's next commit.
    pub(crate) fn break_next_commit(&self, engine: usize, outcome: CommitOutcome) {
        lock(&self.state).broken.insert(engine, outcome);
    }

    /// Lets a commit whose connection is broken arrive later. While it is executed, a resolution waits for it.
    fn apply_later(self: &Arc<Self>, sim: &Arc<Simulation>, batch: Batch, outcome: CommitOutcome) {
        let id = batch.id.filter(|_| matches!(outcome, CommitOutcome::Running { .. }));
        if let Some(id) = id {
            lock(&self.state).running.insert(id, sim.now_ms() + outcome.after_ms());
        }
        let (sim, store) = (Arc::clone(sim), Arc::clone(self));
        tokio::spawn(async move {
            sim.sleep(outcome.after_ms()).await;
            let applied = store.apply(batch).await;
            if let Some(id) = id {
                lock(&store.state).running.remove(&id);
            }
            sim.mark(match applied {
                Some(Ok(())) => "a commit is applied after its connection broke",
                Some(Err(_)) => "a late commit is refused",
                None => "a late commit is lost by a failover",
            });
        });
    }

    /// Resolves the outcome of a commit.
    async fn resolve(&self, sim: &Simulation, id: CommitId) -> Result<Resolution, CommitError> {
        loop {
            let running = lock(&self.state).running.get(&id).copied();
            let Some(until_ms) = running else { break };
            sim.mark("a resolution waits for a commit that still runs");
            sim.sleep(until_ms.saturating_sub(sim.now_ms()).max(1)).await;
        }
        let resolved = self.rows.resolve(id).await;
        if let Ok(resolution) = &resolved {
            sim.mark(match resolution {
                Resolution::Applied => "a commit of unknown outcome was applied",
                Resolution::Forbidden => "an unknown commit is forbidden",
            });
        }
        resolved
    }

    /// Returns whether it fails over.
    fn is_away(&self, now_ms: u64) -> bool {
        now_ms < lock(&self.state).away_until_ms
    }

    fn failovers(&self) -> u64 {
        lock(&self.state).failovers
    }

    /// Adds a batch to the next group; returns its outcome, none if a failover dropped or hid it.
    async fn apply(self: &Arc<Self>, batch: Batch) -> Option<Result<(), CommitError>> {
        let (answer, answered) = oneshot::channel();
        let begins = {
            let mut state = lock(&self.state);
            let failovers = state.failovers;
            state.waiting.push(Waiting { batch, failovers, answer });
            !std::mem::replace(&mut state.is_writing, true)
        };
        if begins {
            tokio::spawn(Arc::clone(self).write());
        }
        answered.await.ok().flatten()
    }

    /// Writes groups until no commit waits.
    async fn write(self: Arc<Self>) {
        let Some(sim) = self.sim.upgrade() else { return };
        loop {
            let (before_ms, after_ms) = sim.commit_times();
            sim.sleep(before_ms).await;
            let group = {
                let mut state = lock(&self.state);
                if state.waiting.is_empty() {
                    state.is_writing = false;
                    return;
                }
                std::mem::take(&mut state.waiting)
            };
            let outcomes = self.rows.commit_group(group.iter().map(|waiting| waiting.batch.clone()).collect()).await;
            for (waiting, outcome) in group.iter().zip(&outcomes) {
                sim.commit_ended(&waiting.batch, outcome);
            }
            sim.sleep(after_ms).await;
            let failovers = self.failovers();
            for (waiting, outcome) in group.into_iter().zip(outcomes) {
                // Confirmations do not survive the connection.
                let _ = waiting.answer.send((waiting.failovers == failovers).then_some(outcome));
            }
        }
    }
}

/// An engine's client of the shared store.
pub(crate) struct StoreClient {
    seam: Seam,
    store: Arc<SharedStore>,
    unknown: Arc<Mutex<BTreeMap<CommitId, Unknown>>>,
}

/// A commit of unknown outcome.
struct Unknown {
    /// The claims and renewals in it.
    claims: Batch,
    /// Whether the engine has begun to resolve its outcome.
    is_asked: bool,
}

impl StoreClient {
    pub(crate) fn of(seam: Seam, store: &Arc<SharedStore>) -> Self {
        Self { seam, store: Arc::clone(store), unknown: Arc::default() }
    }

    fn is_cut_off(&self) -> bool {
        let sim = &self.seam.sim;
        self.store.is_away(sim.now_ms()) || sim.is_cut_off(&self.seam.process, Peer::Store)
    }

    /// Draws the outcome of a commit whose connection breaks; none where it does not break.
    fn drawn_outcome(&self) -> Option<CommitOutcome> {
        let chosen = lock(&self.store.state).broken.remove(&self.seam.process.number);
        let outcome = chosen.or_else(|| self.seam.sim.draw_broken_commit())?;
        let number = self.seam.process.number;
        self.seam.sim.fault(Source::Disk, Fault::CommitBroken.as_str(), number as u64, || {
            format!("the connection of engine {number} breaks during a commit, which is {}", outcome.as_str())
        });
        Some(outcome)
    }

    /// Commits a batch, and shows the observer what the engine sends and learns.
    async fn commit_observed(&self, batch: Batch) -> Result<(), CommitError> {
        let (sim, process) = (&self.seam.sim, &self.seam.process);
        sim.observe(|observer| observer.commit_sent(process.number, &batch, process.paused()));
        let id = batch.id;
        let outcome = self.commit_remotely(batch).await;
        if let Err(CommitError::Unavailable(_) | CommitError::Unknown(_)) = &outcome {
            sim.observe(|observer| observer.commit_failed(process.number, process.paused()));
        }
        if let (Err(CommitError::Unknown(_)), Some(id)) = (&outcome, id) {
            self.watch_unknown(id);
        }
        outcome
    }

    /// Checks that the engine resolves the outcome of a commit before it does anything else.
    fn watch_unknown(&self, id: CommitId) {
        let (seam, unknown) = (self.seam.clone(), Arc::clone(&self.unknown));
        tokio::spawn(async move {
            seam.sim.sleep(1).await;
            let is_unresolved = lock(&unknown).get(&id).is_some_and(|unknown| !unknown.is_asked);
            if seam.is_closed() || seam.sim.is_stopping() {
                return;
            }
            seam.sim.observe(|observer| {
                if is_unresolved {
                    let text = format!("engine {} does not resolve a commit of unknown outcome", seam.process.number);
                    observer.violate("unknown-commits-are-resolved", text, None);
                } else {
                    observer.passes("unknown-commits-are-resolved");
                }
            });
        });
    }

    async fn commit_remotely(&self, batch: Batch) -> Result<(), CommitError> {
        let (sim, number) = (&self.seam.sim, self.seam.process.number);
        self.seam.alive().await;
        if sim.is_store_busy() {
            sim.fault(Source::Disk, Fault::StoreBusy.as_str(), 0, || "the store's queue is full: refused".to_owned());
            return Err(CommitError::Overloaded);
        }
        let (out_ms, back_ms) = sim.store_trip();
        sim.sleep(out_ms).await;
        if self.is_cut_off() {
            sim.sleep(sim.connect_ms()).await;
            self.seam.alive().await;
            sim.mark("a commit cannot reach the shared store");
            return Err(unavailable());
        }
        let claims = claims_of(&batch);
        let broken = self.drawn_outcome();
        let outcome = match broken {
            None => self.store.apply(batch).await,
            Some(CommitOutcome::Applied) => {
                self.store.apply(batch).await;
                None
            }
            Some(CommitOutcome::Dropped) => None,
            Some(outcome) => {
                self.store.apply_later(sim, batch, outcome);
                None
            }
        };
        sim.sleep(back_ms).await;
        self.seam.alive().await;
        let is_heard = !sim.is_cut_off(&self.seam.process, Peer::Store);
        match outcome.filter(|_| is_heard) {
            Some(outcome) => {
                if outcome.is_ok() {
                    sim.observe(|observer| observer.learned_of(number, &claims, self.seam.process.paused()));
                }
                outcome
            }
            None => {
                if let Some(id) = claims.id {
                    lock(&self.unknown).insert(id, Unknown { claims, is_asked: false });
                }
                sim.event(Source::Disk, "commit.unknown", None, number as u64, || {
                    format!("engine {number} does not learn the outcome of a commit")
                });
                sim.mark("the outcome of a commit to the shared store is unknown");
                Err(CommitError::Unknown("connection lost".to_owned()))
            }
        }
    }
}

impl Wrapped for StoreClient {
    type Inner = EmbeddedStore;

    fn inner(&self) -> &EmbeddedStore {
        &self.store.rows
    }

    fn around<'a, T, R>(&'a self, _name: &'static str, read: R) -> Read<'a, T>
    where
        T: Send + 'a,
        R: Fn() -> Read<'a, T> + Send + Sync + 'a,
    {
        Box::pin(async move {
            let sim = &self.seam.sim;
            self.seam.alive().await;
            let (out_ms, back_ms) = sim.store_trip();
            sim.sleep(out_ms).await;
            let failovers = self.store.failovers();
            let mut answer = None;
            if self.is_cut_off() {
                sim.sleep(sim.connect_ms()).await;
            } else {
                answer = Some(read().await);
                sim.sleep(back_ms).await;
            }
            // No caller continues after the process was killed during the read.
            self.seam.alive().await;
            let is_connected = failovers == self.store.failovers() && !sim.is_cut_off(&self.seam.process, Peer::Store);
            answer.filter(|_| is_connected).unwrap_or_else(|| {
                sim.mark("a read cannot reach the shared store");
                Err(ReadError::Unavailable("connection lost".to_owned()))
            })
        })
    }
}

impl Store for StoreClient {
    fn commit(&self, batch: Batch) -> BoxFuture<'_, Result<(), CommitError>> {
        Box::pin(self.commit_observed(batch))
    }

    fn resolve(&self, id: CommitId) -> BoxFuture<'_, Result<Resolution, CommitError>> {
        Box::pin(async move {
            let sim = &self.seam.sim;
            if let Some(unknown) = lock(&self.unknown).get_mut(&id) {
                unknown.is_asked = true;
            }
            self.seam.alive().await;
            let (out_ms, back_ms) = sim.store_trip();
            sim.sleep(out_ms).await;
            if self.is_cut_off() {
                sim.sleep(sim.connect_ms()).await;
                self.seam.alive().await;
                return Err(unavailable());
            }
            let resolved = self.store.resolve(sim, id).await;
            sim.sleep(back_ms).await;
            self.seam.alive().await;
            if self.is_cut_off() {
                return Err(unavailable());
            }
            let unknown = lock(&self.unknown).remove(&id);
            if let (Some(Unknown { claims, .. }), Ok(Resolution::Applied)) = (unknown, &resolved) {
                sim.observe(|observer| {
                    observer.learned_of(self.seam.process.number, &claims, self.seam.process.paused());
                });
            }
            resolved
        })
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn index_search(&self, now: Timestamp, max: usize) -> BoxFuture<'_, Result<usize, CommitError>> {
        Box::pin(async move {
            self.seam.alive().await;
            if self.is_cut_off() {
                return Err(unavailable());
            }
            let indexed = self.store.rows.index_search(now, max).await;
            self.seam.alive().await;
            indexed
        })
    }
}

/// Returns the claims of webhooks and the renewals of leases in a batch.
fn claims_of(batch: &Batch) -> Batch {
    let is_claim =
        |write: &&Write| matches!(write, Write::OnDuty { duty: Duty::Webhooks(_), .. } | Write::Lease { .. });
    let claims = batch.writes.iter().filter(is_claim);
    Batch { writes: claims.cloned().collect(), id: batch.id }
}

fn unavailable() -> CommitError {
    CommitError::Unavailable("connection refused".to_owned())
}
