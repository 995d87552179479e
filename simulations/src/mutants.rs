//! Mutants: how many seeds it takes to kill each. Release builds have none.

use std::fmt;
use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use crate::{
    plan::{self, Mix},
    script::Script,
    simulation::runner,
};

/// What killed a mutant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Killer {
    /// This number of seeds, in sequence.
    Seeds(u64),
    /// No seed, but this scenario.
    Scenario(String),
}

impl fmt::Display for Killer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Seeds(1) => f.write_str("1 seed"),
            Self::Seeds(seeds) => write!(f, "{seeds} seeds"),
            Self::Scenario(name) => write!(f, "{name:?}"),
        }
    }
}

/// A mutant that was hunted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunted {
    /// Its name.
    pub name: &'static str,
    /// Its description.
    pub description: &'static str,
    /// What killed it and which invariant broke; none if it survived.
    pub killed: Option<(Killer, &'static str)>,
}

impl fmt::Display for Hunted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.killed {
            Some((killer, invariant)) => write!(f, "killed   {:<32} by {killer}: {invariant}", self.name),
            None => write!(f, "SURVIVES {:<32} {}", self.name, self.description),
        }
    }
}

/// The parameters of the hunt.
#[derive(Debug, Clone, Copy)]
pub struct Hunt<'a> {
    /// Maximum seeds for each mutant.
    pub seeds: u64,
    /// Sessions of each run.
    pub payments: u32,
    /// Threads.
    pub jobs: usize,
    /// Scenarios to try where no seed kills it: some mutants need a coincidence that is rarely drawn.
    pub scenarios: &'a [Script],
}

/// Returns the mutants that can be killed here, with descriptions; none in a release build. Those of the facade need one
/// that is installed.
#[must_use]
pub fn available() -> Option<Vec<(&'static str, &'static str)>> {
    let has_facade = crate::front::installed().is_some();
    let is_noticed = |name: &str| has_facade || !engine::mutants::is_facade_mutant(name);
    Some(engine::mutants::compiled_in()?.iter().copied().filter(|(name, _)| is_noticed(name)).collect())
}

/// Activates a mutant in this thread, for every simulation that runs in it.
pub fn activate(name: &str) {
    engine::mutants::activate(Some(name));
}

/// Activates the mutants in sequence, runs seeds until an invariant breaks, and reports each. `stop` ends it
/// after the mutants in progress. Returns the outcome of each, in the order given.
pub fn hunt_all(
    bugs: &[(&'static str, &'static str)],
    hunt: Hunt<'_>,
    stop: &AtomicBool,
    report: impl Fn(&Hunted) + Sync,
) -> Vec<Hunted> {
    let next = AtomicUsize::new(0);
    let hunted = Mutex::new(Vec::new());
    let work = || {
        while !stop.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some((name, description)) = bugs.get(number) else { return };
            let one = Hunted { name, description, killed: hunt_one(name, hunt) };
            report(&one);
            hunted.lock().unwrap_or_else(PoisonError::into_inner).push((number, one));
        }
    };
    std::thread::scope(|scope| {
        for number in 0..hunt.jobs.max(1) {
            let spawned = std::thread::Builder::new().name(format!("mutants-{number}")).spawn_scoped(scope, work);
            if spawned.is_err() && number == 0 {
                work();
            }
        }
    });
    let mut hunted = hunted.into_inner().unwrap_or_else(PoisonError::into_inner);
    hunted.sort_unstable_by_key(|(number, _)| *number);
    hunted.into_iter().map(|(_, one)| one).collect()
}

/// Mutants that only several engines over one store can reveal.
const OF_SEVERAL_ENGINES: &[&str] = &[
    "accounts-of-others-unseen",
    "changes-elsewhere-unseen",
    "cursor-without-expected",
    "deposed-holder-sends",
    "double-duty",
    "duties-kept-without-nodes",
    "held-though-enabled",
    "lease-from-after-renewal",
    "orphans-not-adopted",
    "rate-moves-back",
    "retry-without-forbidding",
    "stale-rejection",
    "unknown-is-refused",
    "unshared-refusal",
    "wall-clock-lease",
];

/// Seeds that are tried before the scenarios.
const SEEDS_BEFORE_SCENARIOS: u64 = 20;

/// A mutant is active in this thread only, and a simulation runs in the thread that starts it.
fn hunt_one(name: &str, hunt: Hunt<'_>) -> Option<(Killer, &'static str)> {
    engine::mutants::activate(Some(name));
    let mix = match name {
        _ if engine::mutants::is_facade_mutant(name) => Mix::Facade,
        _ if OF_SEVERAL_ENGINES.contains(&name) => Mix::Engines,
        _ => Mix::Both,
    };
    let by_seed = |seed| {
        let outcome = runner::run(&plan::of_seed(seed, hunt.payments, mix), false);
        outcome.violation.map(|violation| (Killer::Seeds(seed), violation.invariant))
    };
    let by_scenario = |script: &Script| {
        let violation = runner::run(script, false).violation;
        violation.map(|violation| (Killer::Scenario(script.name.clone()), violation.invariant))
    };
    // A mutant that survives the first seeds most likely has its own scenario, which runs quickly.
    let first = hunt.seeds.min(SEEDS_BEFORE_SCENARIOS);
    let broken = (1..=first).find_map(by_seed);
    let broken = broken.or_else(|| hunt.scenarios.iter().find_map(by_scenario));
    let broken = broken.or_else(|| (first + 1..=hunt.seeds).find_map(by_seed));
    engine::mutants::activate(None);
    broken
}

/// Returns the median of the seeds; none if at least half of the mutants survived them.
#[must_use]
pub fn median(hunted: &[Hunted]) -> Option<u64> {
    let taken = hunted.iter().map(|one| match one.killed {
        Some((Killer::Seeds(seeds), _)) => Some(seeds),
        _ => None,
    });
    // A survivor counts as more than any number.
    let mut taken: Vec<u64> = taken.map(|seeds| seeds.unwrap_or(u64::MAX)).collect();
    taken.sort_unstable();
    taken.get(taken.len() / 2).copied().filter(|seeds| *seeds < u64::MAX)
}
