//! Planted bugs: how many seeds it takes to notice each. Compiled in only where the feature `mutants` is on.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use crate::{
    plan::{self, Mix},
    world,
};

/// A planted bug that was hunted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hunted {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub says: &'static str,
    /// How many seeds it took and which invariant broke; none if nobody noticed.
    pub killed: Option<(u64, &'static str)>,
}

/// How the hunt is done.
#[derive(Debug, Clone, Copy)]
pub struct Hunt {
    /// Seeds each bug may take.
    pub seeds: u64,
    /// Sessions of each run.
    pub payments: u32,
    /// Threads.
    pub jobs: usize,
}

/// Returns the planted bugs and what each does; none in a build without them.
#[must_use]
pub fn planted() -> Option<&'static [(&'static str, &'static str)]> {
    engine::mutants::planted()
}

/// Plants the bugs one after the other, runs seeds until an invariant breaks, and tells of each. `stop` ends it after
/// the bugs under way. Returns what came of each, in the order given.
pub fn hunt_all(
    bugs: &[(&'static str, &'static str)],
    hunt: Hunt,
    stop: &AtomicBool,
    tell: impl Fn(Hunted) + Sync,
) -> Vec<Hunted> {
    let next = AtomicUsize::new(0);
    let hunted = Mutex::new(Vec::new());
    let work = || {
        while !stop.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some((name, says)) = bugs.get(number) else { return };
            let one = Hunted { name, says, killed: hunt_one(name, hunt) };
            tell(one);
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

/// A bug is planted in this thread only, and a world runs in the thread that starts it.
fn hunt_one(name: &str, hunt: Hunt) -> Option<(u64, &'static str)> {
    engine::mutants::plant(Some(name));
    let broken = (1..=hunt.seeds).find_map(|seed| {
        let outcome = world::run(&plan::of_seed(seed, hunt.payments, Mix::Both), false);
        outcome.violation.map(|violation| (seed, violation.invariant))
    });
    engine::mutants::plant(None);
    broken
}

/// Returns the seeds it took in the middle of those that were noticed, none if none was.
#[must_use]
pub fn median(hunted: &[Hunted]) -> Option<u64> {
    let mut taken: Vec<u64> = hunted.iter().filter_map(|one| one.killed).map(|(seeds, _)| seeds).collect();
    taken.sort_unstable();
    taken.get(taken.len() / 2).copied()
}
