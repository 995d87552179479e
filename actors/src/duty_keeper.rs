//! Renews the lease of this engine, takes free duties, and releases what others should have: webhook buckets beyond its share,
//! and the duties that need ledger nodes while it reaches none.
//!
//! The holder counts its lease from before it sends the renewal; the store counts from the commit, so that the holder
//! stops first. An engine that takes over ends the expired lease first, which rejects a later renewal: an engine that
//! was suspended detects that it was deposed before it does anything else.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use engine::{mutant, time::Timestamp};
use storage::{Batch, CommitError, Duty, DutyRecord, EngineId, EngineLease, Membership, ReadError, Write};
use tokio::{
    sync::{Mutex, Notify},
    time::Instant,
};

use crate::{context::Context, webhooks::notifier::Notifier};

/// Renewals in the duration of a lease.
const RENEWALS: u32 = 5;
/// Interval at which the leases of other engines are read.
const LOOK: Duration = Duration::from_secs(1);
/// Pause after another engine took a duty first.
const AFTER_CONFLICT: Duration = Duration::from_millis(100);
/// Webhook buckets.
const BUCKETS: usize = 256;

/// Keeps the lease and the duties of this engine.
pub(crate) struct Keeper {
    context: Arc<Context>,
    engine: EngineId,
    notifier: Arc<Notifier>,
    /// Notified when another engine has stopped, or one of its duties was taken over.
    orphans: Arc<Notify>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    has_lease: bool,
    renew_at: Option<Instant>,
    /// The leases of other engines, and since when each has not changed.
    seen: BTreeMap<EngineId, (Timestamp, Instant)>,
    /// The engines, and when their leases began, at the last read of the duties. While they stay the same and each holds its
    /// share, no duty changes its holder, so the duties are read only at each renewal.
    members: Option<BTreeMap<EngineId, Timestamp>>,
}

impl Keeper {
    /// Returns a keeper if the engine shares its store.
    pub(crate) fn new(context: &Arc<Context>, notifier: &Arc<Notifier>, orphans: &Arc<Notify>) -> Option<Arc<Self>> {
        let engine = context.duties.engine()?;
        Some(Arc::new(Self {
            context: Arc::clone(context),
            engine,
            notifier: Arc::clone(notifier),
            orphans: Arc::clone(orphans),
            state: Mutex::default(),
        }))
    }

    /// Begins the lease and takes the duties that are free.
    ///
    /// # Errors
    /// [`ReadError`] if the store cannot be read.
    pub(crate) async fn begin(&self) -> Result<(), ReadError> {
        self.look(&mut *self.state.lock().await).await.map(drop)
    }

    /// Keeps the lease and the duties until it is dropped.
    pub(crate) async fn keep(self: Arc<Self>) {
        loop {
            let wait = {
                let mut state = self.state.lock().await;
                match self.look(&mut state).await {
                    Ok(wait) => wait,
                    Err(error) => {
                        self.context.read_failed(&error);
                        LOOK
                    }
                }
            };
            tokio::time::sleep(wait).await;
        }
    }

    /// Ends the lease: others take the duties at once.
    pub(crate) async fn end(&self) {
        let mut state = self.state.lock().await;
        self.context.duties.deposed();
        if std::mem::take(&mut state.has_lease) {
            let (engine, now) = (self.engine, self.context.now());
            let end = Write::EndLease { engine, by: engine, now };
            if let Err(error) = self.context.env.store.commit(Batch::of(end)).await {
                tracing::debug!(%error, "the lease was not ended: others take over when it expires: {error}");
            }
        }
    }

    /// Renews the lease when due, takes and releases duties; returns when to run again.
    async fn look(&self, state: &mut State) -> Result<Duration, ReadError> {
        let lease = self.context.settings.lease();
        if state.renew_at.is_none_or(|at| self.monotonic() >= at) {
            self.renew(state, lease).await;
            state.members = None;
        }
        let mut leases = self.context.env.store.leases().await?;
        let left = self.end_expired(state, &mut leases, lease).await;
        let others = leases.iter().filter(|lease| lease.engine != self.engine).count();
        self.context.duties.met(others);
        let members = leases.iter().map(|lease| (lease.engine, lease.since)).collect();
        let mut is_conflict = false;
        if state.members.as_ref() != Some(&members) {
            let membership = self.context.env.store.membership().await?;
            self.forget_lost(&membership);
            is_conflict = state.has_lease && !self.take_free(&membership, others + 1).await;
            state.members = Some(members).filter(|_| !is_conflict);
        }
        if state.has_lease {
            self.release_surplus(others + 1).await;
            if others > 0 && self.context.duties.without_nodes().is_some_and(|passed| passed >= lease) {
                self.release_without_nodes().await;
            }
        }
        if left {
            self.orphans.notify_one();
        }
        let until_renewal = state.renew_at.map_or(LOOK, |at| at.saturating_duration_since(self.monotonic()));
        let wait = if others == 0 { until_renewal } else { until_renewal.min(LOOK) };
        Ok(if is_conflict { AFTER_CONFLICT } else { wait.max(Duration::from_millis(1)) })
    }

    fn monotonic(&self) -> Instant {
        self.context.env.clock.monotonic()
    }

    /// Begins or renews the lease.
    async fn renew(&self, state: &mut State, lease: Duration) {
        let context = &self.context;
        // At most twice: a deposed engine begins a new lease.
        for _ in 0..2 {
            let (began, wall, now) = (self.monotonic(), context.env.clock.now(), context.now());
            let is_new = !state.has_lease;
            let write = Write::Lease { engine: self.engine, is_new, now, duration: lease };
            match context.env.store.commit(Batch::of(write)).await {
                Ok(()) => {
                    context.env.probe.reach("duty: lease renewed, not counted");
                    let counted_from = if mutant!("lease-from-after-renewal") { self.monotonic() } else { began };
                    context.duties.renewed(counted_from + lease, wall + lease);
                    state.has_lease = true;
                    state.renew_at = Some(began + lease / RENEWALS);
                    return;
                }
                Err(CommitError::Conflict { .. }) if is_new => state.has_lease = true,
                Err(CommitError::Conflict { .. }) => {
                    tracing::warn!(engine = %self.engine, "the lease expired and another engine ended it: duties lost");
                    context.duties.deposed();
                    state.has_lease = false;
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot renew the lease of this engine: {error}");
                    state.renew_at = Some(self.monotonic() + LOOK.min(lease / RENEWALS));
                    return;
                }
            }
        }
    }

    /// Drops duties that others have taken.
    fn forget_lost(&self, membership: &Membership) {
        let own = membership.duties.iter().filter(|record| record.holder == Some(self.engine));
        let own: BTreeMap<Duty, u64> = own.map(|record| (record.duty, record.term)).collect();
        for (duty, term) in self.context.duties.terms() {
            if own.get(&duty) != Some(&term) {
                self.context.duties.lost(duty);
            }
        }
    }

    /// Ends the expired leases of other engines; returns whether one has stopped since the last call.
    async fn end_expired(&self, state: &mut State, leases: &mut Vec<EngineLease>, lease: Duration) -> bool {
        let now = self.context.now();
        let mut ended = BTreeSet::new();
        for other in leases.iter().filter(|other| other.engine != self.engine) {
            let seen = state.seen.entry(other.engine).or_insert((other.until, self.monotonic()));
            if seen.0 != other.until {
                *seen = (other.until, self.monotonic());
            }
            // Clocks differ: a lease that was not renewed for its duration has expired, too. The store decides.
            let unchanged = self.monotonic().saturating_duration_since(seen.1);
            let is_expired = other.until <= now || unchanged >= lease;
            if is_expired && state.has_lease && self.end_lease_of(other, now).await {
                ended.insert(other.engine);
            }
        }
        leases.retain(|lease| !ended.contains(&lease.engine));
        let before = state.seen.len();
        state.seen.retain(|engine, _| leases.iter().any(|lease| lease.engine == *engine));
        state.seen.len() < before
    }

    async fn end_lease_of(&self, other: &EngineLease, now: Timestamp) -> bool {
        let end = Write::EndLease { engine: other.engine, by: self.engine, now };
        match self.context.env.store.commit(Batch::of(end)).await {
            Ok(()) => {
                tracing::warn!(engine = %other.engine, "engine {} has not renewed its lease: taking over", other.engine);
                true
            }
            Err(error) => {
                self.context.commit_failed(&error);
                false
            }
        }
    }

    /// Takes free duties: every single one, and buckets up to a fair share. Returns whether no other engine took one
    /// first.
    async fn take_free(&self, membership: &Membership, engines: usize) -> bool {
        let held = self.context.duties.terms();
        let records: BTreeMap<Duty, &DutyRecord> =
            membership.duties.iter().map(|record| (record.duty, record)).collect();
        let is_free = |duty: &Duty| {
            !held.contains_key(duty)
                && records
                    .get(duty)
                    .and_then(|record| record.holder)
                    .is_none_or(|holder| holder == self.engine || membership.lease(holder).is_none())
        };
        let buckets_held = held.keys().filter(|duty| matches!(duty, Duty::Webhooks(_))).count();
        let mut remaining = share(engines).saturating_sub(buckets_held);
        let mut wanted = Vec::new();
        // Another engine may reach the nodes.
        let is_for_others =
            |duty: &Duty| duty.needs_nodes() && engines > 1 && self.context.duties.without_nodes().is_some();
        for duty in Duty::all().filter(|duty| is_free(duty) && !is_for_others(duty)) {
            if matches!(duty, Duty::Webhooks(_)) {
                if remaining == 0 {
                    continue;
                }
                remaining -= 1;
            }
            wanted.push((duty, records.get(&duty).map_or(0, |record| record.term)));
        }
        if wanted.is_empty() {
            return true;
        }
        let take = |(duty, expected): &(Duty, u64)| Write::Duty {
            duty: *duty,
            engine: self.engine,
            is_taken: true,
            expected: *expected,
        };
        match self.context.env.store.commit(wanted.iter().map(take).collect()).await {
            Ok(()) => {
                self.context.env.probe.reach("duty: taken, not begun");
                let count = wanted.len();
                tracing::info!(engine = %self.engine, count, "this engine has taken {count} duties");
                self.context.duties.taken(wanted.into_iter().map(|(duty, expected)| (duty, expected + 1)));
                self.notifier.outbox_changed();
                self.orphans.notify_one();
                true
            }
            Err(error) => {
                self.context.commit_failed(&error);
                !matches!(error, CommitError::Conflict { .. })
            }
        }
    }

    /// Releases buckets beyond a fair share, once no webhook of theirs is in progress.
    async fn release_surplus(&self, engines: usize) {
        let duties = &self.context.duties;
        self.release(duties.drain(duties.surplus(share(engines)))).await;
    }

    /// Releases the duties that need ledger nodes: another engine may reach them.
    async fn release_without_nodes(&self) {
        if mutant!("duties-kept-without-nodes") {
            return;
        }
        let held = self.context.duties.terms().into_iter().filter(|(duty, _)| duty.needs_nodes());
        let held: Vec<_> = held.collect();
        if !held.is_empty() {
            let count = held.len();
            tracing::warn!(engine = %self.engine, count, "this engine reaches no ledger node: releasing {count} duties");
        }
        self.release(held).await;
    }

    async fn release(&self, idle: Vec<(Duty, u64)>) {
        if idle.is_empty() {
            return;
        }
        let release = |(duty, expected): &(Duty, u64)| Write::Duty {
            duty: *duty,
            engine: self.engine,
            is_taken: false,
            expected: *expected,
        };
        match self.context.env.store.commit(idle.iter().map(release).collect()).await {
            Ok(()) => idle.iter().for_each(|(duty, _)| self.context.duties.released(*duty)),
            Err(error) => self.context.commit_failed(&error),
        }
    }
}

/// Returns the webhook buckets that an engine may hold.
fn share(engines: usize) -> usize {
    BUCKETS.div_ceil(engines)
}
