//! Mutants: how many seeds it takes to notice each. Release builds have none.

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

/// What noticed a mutant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Killer {
    /// So many seeds, one after the other.
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
    /// What it does.
    pub description: &'static str,
    /// What noticed it and which invariant broke; none if nothing did.
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

/// How the hunt is done.
#[derive(Debug, Clone, Copy)]
pub struct Hunt<'a> {
    /// Seeds each mutant may take.
    pub seeds: u64,
    /// Sessions of each run.
    pub payments: u32,
    /// Threads.
    pub jobs: usize,
    /// Scenarios to try where no seed notices it: some mutants take a coincidence that is rarely drawn.
    pub scenarios: &'a [Script],
}

/// Returns the mutants that can be noticed here and what each does; none in a release build. Those of the facade need one
/// that is installed.
#[must_use]
pub fn planted() -> Option<Vec<(&'static str, &'static str)>> {
    let has_facade = crate::front::installed().is_some();
    let is_noticed = |name: &str| has_facade || !engine::mutants::is_facade_mutant(name);
    Some(engine::mutants::compiled_in()?.iter().copied().filter(|(name, _)| is_noticed(name)).collect())
}

/// Switches a mutant on in this thread: every simulation that runs in it has it.
pub fn plant(name: &str) {
    engine::mutants::activate(Some(name));
}

/// Switches the mutants on one after the other, runs seeds until an invariant breaks, and reports each. `stop` ends it
/// after the mutants under way. Returns the outcome of each, in the order given.
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

/// Mutants that only several engines over one store can show.
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

/// A mutant is on in this thread only, and a simulation runs in the thread that starts it.
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
    // What the first seeds do not notice most likely has a scenario of its own, which takes a moment.
    let first = hunt.seeds.min(SEEDS_BEFORE_SCENARIOS);
    let broken = (1..=first).find_map(by_seed);
    let broken = broken.or_else(|| hunt.scenarios.iter().find_map(by_scenario));
    let broken = broken.or_else(|| (first + 1..=hunt.seeds).find_map(by_seed));
    engine::mutants::activate(None);
    broken
}

/// Returns the seeds it took in the middle of all; none if half of them took more than there were.
#[must_use]
pub fn median(hunted: &[Hunted]) -> Option<u64> {
    let taken = hunted.iter().map(|one| match one.killed {
        Some((Killer::Seeds(seeds), _)) => Some(seeds),
        _ => None,
    });
    // What no seed noticed took more than any number.
    let mut taken: Vec<u64> = taken.map(|seeds| seeds.unwrap_or(u64::MAX)).collect();
    taken.sort_unstable();
    taken.get(taken.len() / 2).copied().filter(|seeds| *seeds < u64::MAX)
}
