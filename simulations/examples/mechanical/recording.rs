//! The simulations without a mutant: which places of mutants each passes, how long it takes, and what it reaches.
//!
//! A simulation that does not pass a mutant's place is the same with it as without, so it need not be run again.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use serde::{Deserialize, Serialize};

use crate::{
    Result,
    hunt::{Limits, run},
    trial,
};

/// A simulation without a mutant.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Recorded {
    /// Its name.
    pub(crate) name: String,
    /// How long it took, milliseconds.
    pub(crate) took_ms: u64,
    /// The numbers of the mutants whose places it passes.
    pub(crate) passes: BTreeSet<usize>,
    /// The required places that it reaches, if it is of a seed.
    pub(crate) reaches: BTreeSet<String>,
}

/// Returns what the simulations do without a mutant; records it in the tree the first time.
pub(crate) fn of(tree: &Path, seeds: u64, jobs: u64) -> Result<Vec<Recorded>> {
    let file = tree.join(format!("recorded-{seeds}.json"));
    let binary = fs::metadata(crate::hunt::binary(tree))?.modified()?;
    if fs::metadata(&file).is_ok_and(|there| there.modified().is_ok_and(|at| at > binary)) {
        return Ok(serde_json::from_str(&fs::read_to_string(file)?)?);
    }
    let names = trial::names(tree, seeds)?;
    let (next, all) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    let work = || -> std::result::Result<(), String> {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(name) = names.get(at) else { return Ok(()) };
            let recorded = record(tree, name).map_err(|error| error.to_string())?;
            all.lock().unwrap_or_else(PoisonError::into_inner).insert(at, recorded);
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs.max(1)).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|one| one.join().map_err(|_| "a worker panicked".to_owned())?)
    })?;
    let all: Vec<Recorded> = all.into_inner().unwrap_or_else(PoisonError::into_inner).into_values().collect();
    fs::write(file, serde_json::to_string(&all)?)?;
    Ok(all)
}

#[expect(clippy::disallowed_methods, reason = "measures a process, not the simulation in it")]
fn record(tree: &Path, name: &str) -> Result<Recorded> {
    let begins = Instant::now();
    let (code, output) = run(tree, "record", &[name], Limits::WIDEST)?;
    if code != Some(0) {
        return Err(format!("without a mutant {name} ends with {code:?}: {output}").into());
    }
    let took_ms = u64::try_from(begins.elapsed().as_millis()).unwrap_or(u64::MAX);
    let passes = output.lines().filter_map(|line| line.strip_prefix("reached ")?.parse().ok()).collect();
    Ok(Recorded { name: name.to_owned(), took_ms, passes, reaches: places_in(&output)? })
}

/// Returns the required places that the output of a trial lists.
pub(crate) fn places_in(output: &str) -> Result<BTreeSet<String>> {
    let last: serde_json::Value = serde_json::from_str(output.lines().last().unwrap_or_default())?;
    Ok(serde_json::from_value(last["places"].clone())?)
}
