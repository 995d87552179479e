//! The duties that this engine holds, and the end of its lease by a monotonic clock.
//!
//! A duty is work that one engine does at a time. An exclusive engine holds all of them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use engine::{mutant, time::Timestamp};
use prometheus_client::metrics::{family::Family, gauge::Gauge};
use storage::{Batch, Buckets, Duty, EngineId, Write};
use tokio::time::Instant;

use crate::environment::Clock;

/// The number of duties held, by kind, and the engines that share the store.
#[derive(Debug, Clone, Default)]
pub(crate) struct DutyMetrics {
    pub(crate) held: Family<[(&'static str, &'static str); 1], Gauge>,
    pub(crate) engines: Gauge,
}

/// The duties that this engine holds.
pub(crate) struct Duties {
    /// `None` for an exclusive engine.
    shared: Option<Shared>,
    metrics: DutyMetrics,
}

struct Shared {
    engine: EngineId,
    clock: Arc<dyn Clock>,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    /// The end of the lease.
    until: Option<Lease>,
    terms: BTreeMap<Duty, u64>,
    /// Duties to release once no work is in progress.
    draining: BTreeSet<Duty>,
    /// Work in progress, by duty.
    in_progress: BTreeMap<Duty, usize>,
    /// Other engines with a lease.
    others: usize,
    /// Since when this engine has reached no ledger node.
    without_nodes_since: Option<Instant>,
}

/// The end of a lease.
#[derive(Clone, Copy)]
struct Lease {
    at: Instant,
    by_wall_clock: Timestamp,
}

/// The term in which this engine holds a duty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Term(Option<(Duty, u64)>);

impl Term {
    /// Returns the duty and the term; `None` for an exclusive engine.
    pub(crate) fn guard(self) -> Option<Write> {
        self.0.map(|(duty, term)| Write::OnDuty { duty, term })
    }

    /// Adds the condition to a batch that the duty is still held in this term.
    pub(crate) fn guarding(self, batch: Batch) -> Batch {
        match self.guard() {
            Some(guard) => batch.and(guard),
            None => batch,
        }
    }
}

/// Work on a duty, which is released only afterwards.
pub(crate) struct Work {
    duties: Arc<Duties>,
    pub(crate) duty: Duty,
    pub(crate) term: Term,
}

impl Drop for Work {
    fn drop(&mut self) {
        let Some(shared) = &self.duties.shared else { return };
        let mut held = shared.held();
        if let Some(count) = held.in_progress.get_mut(&self.duty) {
            *count -= 1;
            if *count == 0 {
                held.in_progress.remove(&self.duty);
            }
        }
    }
}

impl Shared {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how much longer the lease lasts.
    fn remaining(&self, held: &Held) -> Duration {
        let Some(until) = held.until else { return Duration::ZERO };
        if mutant!("wall-clock-lease") {
            return until.by_wall_clock.since(self.clock.now());
        }
        until.at.saturating_duration_since(self.clock.monotonic())
    }
}

impl Duties {
    /// Holds every duty, for an exclusive engine.
    pub(crate) fn all(metrics: DutyMetrics) -> Self {
        for duty in Duty::all() {
            metrics.held.get_or_create(&[("duty", duty.kind())]).inc();
        }
        metrics.engines.set(1);
        Self { shared: None, metrics }
    }

    /// Holds no duty yet.
    pub(crate) fn of(engine: EngineId, clock: Arc<dyn Clock>, metrics: DutyMetrics) -> Self {
        for duty in Duty::all() {
            metrics.held.get_or_create(&[("duty", duty.kind())]).set(0);
        }
        metrics.engines.set(1);
        Self { shared: Some(Shared { engine, clock, held: Mutex::default() }), metrics }
    }

    /// Returns the id of the engine; `None` for an exclusive engine.
    pub(crate) fn engine(&self) -> Option<EngineId> {
        self.shared.as_ref().map(|shared| shared.engine)
    }

    /// Returns whether this engine knows of no other engine that uses the store.
    pub(crate) fn is_alone(&self) -> bool {
        self.shared.as_ref().is_none_or(|shared| shared.held().others == 0)
    }

    /// Records whether this engine reaches the ledger nodes.
    pub(crate) fn record_nodes(&self, are_reached: bool) {
        let Some(shared) = &self.shared else { return };
        let since = &mut shared.held().without_nodes_since;
        *since = if are_reached { None } else { since.or_else(|| Some(shared.clock.monotonic())) };
    }

    /// Returns for how long this engine has reached no ledger node.
    pub(crate) fn without_nodes(&self) -> Option<Duration> {
        let shared = self.shared.as_ref()?;
        let since = shared.held().without_nodes_since?;
        Some(shared.clock.monotonic().saturating_duration_since(since))
    }

    /// Returns the term in which this engine holds a duty; none if it does not hold it.
    pub(crate) fn held(&self, duty: Duty) -> Option<Term> {
        self.held_for(duty, Duration::ZERO)
    }

    /// As [`Self::held`], if the lease lasts longer than `least`.
    pub(crate) fn held_for(&self, duty: Duty, least: Duration) -> Option<Term> {
        let Some(shared) = &self.shared else { return Some(Term(None)) };
        let held = shared.held();
        let term = held.terms.get(&duty).map(|term| Term(Some((duty, *term))));
        if mutant!("double-duty") {
            return Some(Term(None));
        }
        let is_valid =
            shared.remaining(&held) > least || mutant!("deposed-holder-sends") && matches!(duty, Duty::Webhooks(_));
        term.filter(|_| is_valid && !held.draining.contains(&duty))
    }

    /// Starts work on a duty, if the lease lasts longer than `least`.
    pub(crate) fn begin(self: &Arc<Self>, duty: Duty, least: Duration) -> Option<Work> {
        let term = self.held_for(duty, least)?;
        if let Some(shared) = &self.shared {
            *shared.held().in_progress.entry(duty).or_default() += 1;
        }
        Some(Work { duties: Arc::clone(self), duty, term })
    }

    /// Returns the buckets whose webhooks this engine delivers.
    pub(crate) fn buckets(&self) -> Buckets {
        let Some(shared) = &self.shared else { return Buckets::ALL };
        let held = shared.held();
        if mutant!("double-duty") {
            return Buckets::ALL;
        }
        let is_valid = !shared.remaining(&held).is_zero() || mutant!("deposed-holder-sends");
        let mut buckets = Buckets::NONE;
        for duty in held.terms.keys().filter(|duty| is_valid && !held.draining.contains(duty)) {
            if let Duty::Webhooks(bucket) = duty {
                buckets.insert(*bucket);
            }
        }
        buckets
    }

    /// Records that another engine has taken a duty.
    pub(crate) fn lost(&self, duty: Duty) {
        let Some(shared) = &self.shared else { return };
        let mut held = shared.held();
        held.draining.remove(&duty);
        if held.terms.remove(&duty).is_some() {
            tracing::warn!(%duty, "another engine has taken the duty {duty}");
            self.count(&held);
        }
    }

    /// Updates the metric of held duties: none once the lease has run out, because this engine no longer acts on them.
    fn count(&self, held: &Held) {
        let lasts = self.shared.as_ref().is_some_and(|shared| !shared.remaining(held).is_zero());
        let mut counts: BTreeMap<&str, i64> = Duty::all().map(|duty| (duty.kind(), 0)).collect();
        for duty in held.terms.keys().filter(|_| lasts) {
            *counts.entry(duty.kind()).or_default() += 1;
        }
        for (kind, count) in counts {
            self.metrics.held.get_or_create(&[("duty", kind)]).set(count);
        }
        self.metrics.engines.set(i64::try_from(held.others).unwrap_or(i64::MAX).saturating_add(1));
    }
}

/// The changes of the keeper; `None` for an exclusive engine.
impl Duties {
    /// Records a renewed lease.
    pub(crate) fn renewed(&self, at: Instant, by_wall_clock: Timestamp) {
        let Some(shared) = &self.shared else { return };
        let mut held = shared.held();
        let has_lapsed = shared.remaining(&held).is_zero();
        held.until = Some(Lease { at, by_wall_clock });
        if has_lapsed {
            self.count(&held);
        }
    }

    /// Records the end of the lease and of every duty.
    pub(crate) fn deposed(&self) {
        self.change(|held| {
            held.until = None;
            held.terms.clear();
            held.draining.clear();
        });
    }

    /// Updates the metric of held duties after a time without changes, in which the lease may have run out.
    pub(crate) fn recount(&self) {
        self.change(|_| ());
    }

    /// Records the number of other engines.
    pub(crate) fn met(&self, others: usize) {
        if self.shared.as_ref().is_some_and(|shared| shared.held().others != others) {
            self.change(|held| held.others = others);
        }
    }

    /// Records duties that this engine has taken, with their terms.
    pub(crate) fn taken(&self, duties: impl IntoIterator<Item = (Duty, u64)>) {
        self.change(|held| held.terms.extend(duties));
    }

    /// Records that a duty was released.
    pub(crate) fn released(&self, duty: Duty) {
        self.change(|held| {
            held.terms.remove(&duty);
            held.draining.remove(&duty);
        });
    }

    /// Sets the duties to release; returns those without work in progress.
    pub(crate) fn drain(&self, duties: BTreeSet<Duty>) -> Vec<(Duty, u64)> {
        let Some(shared) = &self.shared else { return Vec::new() };
        let mut held = shared.held();
        let is_idle = |duty: &&Duty| !held.in_progress.contains_key(duty);
        let idle = duties.iter().filter(is_idle).filter_map(|duty| Some((*duty, *held.terms.get(duty)?))).collect();
        held.draining = duties;
        idle
    }

    /// Returns the webhook buckets held beyond `share`.
    pub(crate) fn surplus(&self, share: usize) -> BTreeSet<Duty> {
        let Some(shared) = &self.shared else { return BTreeSet::new() };
        let held = shared.held();
        held.terms.keys().filter(|duty| matches!(duty, Duty::Webhooks(_))).skip(share).copied().collect()
    }

    /// Returns the duties held, with their terms, whether the lease lasts or not.
    pub(crate) fn terms(&self) -> BTreeMap<Duty, u64> {
        self.shared.as_ref().map(|shared| shared.held().terms.clone()).unwrap_or_default()
    }

    fn change(&self, change: impl FnOnce(&mut Held)) {
        if let Some(shared) = &self.shared {
            let mut held = shared.held();
            change(&mut held);
            self.count(&held);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock whose monotonic time is tokio's.
    struct TestClock;

    impl Clock for TestClock {
        fn now(&self) -> Timestamp {
            Timestamp::from_seconds(1_800_000_000)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_metric_counts_no_duty_once_the_lease_has_run_out() {
        let metrics = DutyMetrics::default();
        let duties = Duties::of(EngineId::from_bits(1), Arc::new(TestClock), metrics.clone());
        let held = || metrics.held.get_or_create(&[("duty", Duty::Scanner.kind())]).get();
        let lease = Duration::from_secs(10);
        let renew = || duties.renewed(TestClock.monotonic() + lease, TestClock.now() + lease);
        renew();
        duties.taken([(Duty::Scanner, 1)]);
        assert_eq!(held(), 1);
        tokio::time::advance(lease).await;
        duties.recount();
        assert_eq!((held(), duties.held(Duty::Scanner)), (0, None));
        // The store returned before another engine took the duty.
        renew();
        assert_eq!(held(), 1);
        assert!(duties.held(Duty::Scanner).is_some());
    }
}
