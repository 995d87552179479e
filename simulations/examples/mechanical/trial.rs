//! One mutant, or none: the library of scenarios, and seeds, until something notices it.

use std::{fs, path::Path, process::ExitCode, sync::atomic::AtomicBool};

use simulations::{
    campaign::{self, Campaign},
    plan::{self, Mix},
    runner, scenario,
};

use crate::Result;

/// Seeds that are tried before the scenarios: most mutants fall to the first.
const FIRST: u64 = 4;

/// Prints what noticed it, and ends with 10 if something did.
pub(crate) fn run(root: &Path, seeds: u64) -> Result<ExitCode> {
    for seed in 1..=FIRST {
        if let Some(broken) = runner::run(&plan::of_seed(seed, 50, Mix::Both), false).violation {
            return Ok(told(&format!("seed {seed}"), broken.invariant));
        }
    }
    let mut files: Vec<_> =
        fs::read_dir(root.join("simulations/scenarios"))?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    files.sort();
    for file in files {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if let Some(broken) = runner::run(&scenario::read(&fs::read_to_string(&file)?)?, false).violation {
            return Ok(told(&name, broken.invariant));
        }
    }
    let campaign = Campaign {
        engines: None,
        first_seed: FIRST + 1,
        runs: seeds.saturating_sub(FIRST),
        payments: 70,
        mix: Mix::Both,
        jobs: 1,
        until_fail: true,
        time: None,
    };
    let summary = campaign::run(&campaign, &AtomicBool::new(false), |_| {});
    if let Some(failure) = summary.failures.first() {
        return Ok(told(&format!("seed {}", failure.seed), failure.violation.invariant));
    }
    match summary.missed().first() {
        Some(mark) => Ok(told(&format!("{seeds} seeds"), mark)),
        None => Ok(ExitCode::SUCCESS),
    }
}

fn told(by: &str, invariant: &str) -> ExitCode {
    println!("noticed by {by}: {invariant}");
    ExitCode::from(10)
}
