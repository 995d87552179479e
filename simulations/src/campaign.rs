//! Many runs: over seeds, on several threads, with progress, a stop on request, and a summary.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use crate::{
    coverage::{self, Places},
    invariants::INVARIANTS,
    observer::Violation,
    plan::{self, Mix},
    simulation::{Outcome, runner},
};

/// The parameters of a campaign.
#[derive(Debug, Clone, Copy)]
pub struct Campaign {
    /// The first seed.
    pub first_seed: u64,
    /// The number of runs; each has the next seed.
    pub runs: u64,
    /// Sessions of each run.
    pub payments: u32,
    /// Which faults.
    pub mix: Mix,
    /// Engines of each run; none if the mix draws the number.
    pub engines: Option<usize>,
    /// Threads.
    pub jobs: usize,
    /// Whether the first failure stops it.
    pub until_fail: bool,
    /// Its maximum duration.
    pub time: Option<Duration>,
}

/// A run that failed.
#[derive(Debug, Clone)]
pub struct Failure {
    /// Its seed.
    pub seed: u64,
    /// The violation.
    pub violation: Violation,
    /// The exit code of its kind.
    pub exit_code: u8,
}

/// The result of a campaign.
#[derive(Debug, Clone, Default)]
pub struct Summary {
    /// Runs that ended.
    pub runs: u64,
    /// Sessions that reached their end.
    pub lifecycles: u64,
    /// Sessions by final state.
    pub states: BTreeMap<&'static str, u64>,
    /// Virtual milliseconds.
    pub virtual_ms: u64,
    /// Processes started.
    pub boots: u64,
    /// Events traced.
    pub events: u64,
    /// Syncs of simulated disks.
    pub syncs: u64,
    /// Faults injected, by kind.
    pub faults: BTreeMap<&'static str, u64>,
    /// Rare states reached.
    pub marks: BTreeMap<&'static str, u64>,
    /// Faults of nodes, by name and the node's position in the list.
    pub places: Places,
    /// How often each invariant was checked and held, in the order of the list.
    pub passes: Vec<u64>,
    /// Failed runs, in order of seed.
    pub failures: Vec<Failure>,
    /// Wall time.
    pub took: Duration,
    /// Whether it ended before its last run.
    pub was_stopped: bool,
}

/// Lifecycles after which every required state must have been reached.
pub const ENOUGH: u64 = 20_000;

impl Summary {
    fn add(&mut self, seed: u64, outcome: Outcome) {
        self.runs += 1;
        self.lifecycles += outcome.lifecycles;
        self.virtual_ms += outcome.virtual_ms;
        self.boots += u64::from(outcome.boots);
        self.events += outcome.events;
        self.syncs += outcome.syncs;
        for (into, from) in [
            (&mut self.states, &outcome.states),
            (&mut self.faults, &outcome.faults),
            (&mut self.marks, &outcome.marks),
        ] {
            for (name, count) in from {
                *into.entry(name).or_default() += count;
            }
        }
        for (place, count) in &outcome.places {
            *self.places.entry(*place).or_default() += count;
        }
        self.passes.resize(INVARIANTS.len(), 0);
        for (sum, passes) in self.passes.iter_mut().zip(&outcome.passes) {
            *sum += passes;
        }
        let exit_code = outcome.exit_code();
        if let Some(violation) = outcome.violation {
            self.failures.push(Failure { seed, violation, exit_code });
            self.failures.sort_by_key(|failure| failure.seed);
        }
    }

    /// Returns the required states that were never reached, after enough lifecycles to expect them.
    #[must_use]
    pub fn missed(&self) -> Vec<String> {
        if self.lifecycles < ENOUGH || self.faults.is_empty() {
            return Vec::new();
        }
        coverage::missed(&self.marks, &self.places)
    }

    /// Returns the exit code: the first failure's, 14 for a required state that was never reached, 0 otherwise.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self.failures.first() {
            Some(failure) => failure.exit_code,
            None if !self.missed().is_empty() => 14,
            None => 0,
        }
    }

    /// Returns lifecycles in a second of wall time.
    #[must_use]
    pub fn lifecycles_per_second(&self) -> u64 {
        self.lifecycles * 1_000 / u64::try_from(self.took.as_millis()).unwrap_or(u64::MAX).max(1)
    }

    /// Returns virtual seconds in a second of wall time.
    #[must_use]
    pub fn times_real(&self) -> u64 {
        self.virtual_ms / u64::try_from(self.took.as_millis()).unwrap_or(u64::MAX).max(1)
    }
}

/// Runs a campaign. `stop` ends it after the runs in progress; `progress` is called with the state after every run.
#[expect(clippy::disallowed_methods, reason = "a campaign's own speed is wall time; nothing simulated sees it")]
pub fn run(campaign: &Campaign, stop: &AtomicBool, progress: impl Fn(&Summary) + Sync) -> Summary {
    let began = Instant::now();
    let next = AtomicU64::new(0);
    let is_over = AtomicBool::new(false);
    let summary = Mutex::new(Summary::default());
    let work = || {
        loop {
            let late = campaign.time.is_some_and(|limit| began.elapsed() >= limit);
            if late || stop.load(Ordering::Relaxed) || is_over.load(Ordering::Relaxed) {
                return;
            }
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= campaign.runs {
                return;
            }
            let seed = campaign.first_seed.wrapping_add(number);
            let outcome =
                runner::run(&plan::of_seed_with(seed, campaign.payments, campaign.mix, campaign.engines), false);
            let mut summary = summary.lock().unwrap_or_else(PoisonError::into_inner);
            summary.add(seed, outcome);
            summary.took = began.elapsed();
            if campaign.until_fail && !summary.failures.is_empty() {
                is_over.store(true, Ordering::Relaxed);
            }
            progress(&summary);
        }
    };
    std::thread::scope(|scope| {
        for number in 0..campaign.jobs.max(1) {
            let spawned = std::thread::Builder::new().name(format!("campaign-{number}")).spawn_scoped(scope, work);
            // Fewer threads than requested are slower, not wrong; without any the caller's thread does the work.
            if spawned.is_err() && number == 0 {
                work();
            }
        }
    });
    let mut summary = summary.into_inner().unwrap_or_else(PoisonError::into_inner);
    summary.was_stopped = summary.runs < campaign.runs;
    summary.took = began.elapsed();
    summary
}
