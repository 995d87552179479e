//! The simulations that look for one mutant, or for none: the scenario library and seeds.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use serde_json::json;
use simulations::{
    coverage,
    plan::{self, Mix},
    runner, scenario,
    script::Script,
};

use crate::Result;

/// Sessions of the simulation of a seed.
const PAYMENTS: u32 = 70;
/// What a simulation of a seed is named by, before its number.
pub(crate) const SEED: &str = "seed ";

/// Returns the names of all simulations: the scenario files, then `seeds` seeds.
pub(crate) fn names(root: &Path, seeds: u64) -> Result<Vec<String>> {
    let files = fs::read_dir(folder(root))?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    let mut names: Vec<String> =
        files.iter().filter_map(|file| file.file_stem()?.to_str().map(str::to_owned)).collect();
    names.sort();
    names.extend((1..=seeds).map(|seed| format!("{SEED}{seed}")));
    Ok(names)
}

fn folder(root: &Path) -> PathBuf {
    root.join("simulations/scenarios")
}

fn script(root: &Path, name: &str) -> Result<Script> {
    if let Some(seed) = name.strip_prefix(SEED) {
        return Ok(plan::of_seed(seed.parse()?, PAYMENTS, Mix::Both));
    }
    Ok(scenario::read(&fs::read_to_string(folder(root).join(format!("{name}.toml")))?)?)
}

/// Runs the simulations that a file names, one a line, until one finds a violation. Prints the violation and exits with 10;
/// otherwise prints as JSON which required places the seeds have reached.
pub(crate) fn run(root: &Path, list: &Path) -> Result<ExitCode> {
    let mut reached = BTreeSet::new();
    for name in fs::read_to_string(list)?.lines() {
        let outcome = runner::run(&script(root, name)?, false);
        if let Some(broken) = outcome.violation {
            println!("killed by {name}: {}: {}", broken.invariant, broken.text);
            return Ok(ExitCode::from(10));
        }
        if name.starts_with(SEED) {
            reached.extend(coverage::reached(&outcome.marks, &outcome.places));
        }
    }
    println!("{}", json!({ "places": reached }));
    Ok(ExitCode::SUCCESS)
}
