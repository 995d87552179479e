//! The hunt: a process for each mutant, so that one that never ends, or eats memory, is ended by the system.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::Write as _,
    os::unix::process::ExitStatusExt as _,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use serde_json::{Value, json};
use simulations::random::Random;

use crate::{Result, rules::Mutant, tree};

/// Processor time that a run may take, seconds. Wall time would depend on what else the machine does.
const PROCESSOR_TIME: &str = "600";
/// Wall time that a run may take, seconds: ends one that waits for ever and uses no processor time.
const WALL_TIME: &str = "3600";
/// The exit code of `timeout`, and the signal that ends a process whose processor time is used up (`SIGXCPU`).
const TIMED_OUT: (i32, i32) = (124, 24);
/// The file of the tree that holds the outcome of every hunted mutant.
const HUNTED: &str = "hunted.jsonl";
/// What a run may take of memory, in kibibytes.
const MEMORY: &str = "6000000";

/// Names a mutant by what does not move when lines do.
fn names(mutants: &[Mutant]) -> Vec<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let name = |one: &Mutant| {
        let name = format!("{} {}: {}", one.file, one.function, one.rule);
        let count = seen.entry(name.clone()).or_default();
        *count += 1;
        format!("{name} {count}")
    };
    mutants.iter().map(name).collect()
}

/// Writes the tree, its list of mutants, and compiles it.
pub(crate) fn grow(root: &Path, tree: &Path) -> Result<()> {
    fs::create_dir_all(tree)?;
    let mutants = tree::grow(root, &tree.canonicalize()?, |line| println!("{line}"))?;
    let listed: Vec<Value> = mutants
        .iter()
        .zip(names(&mutants))
        .map(|(one, name)| {
            json!({ "name": name, "file": one.file, "function": one.function, "line": one.line, "rule": one.rule,
                "before": one.before, "after": one.after })
        })
        .collect();
    fs::write(tree.join("mutants.json"), serde_json::to_string_pretty(&listed)?)?;
    println!("{} mutants compile; an optimised build of them follows", listed.len());
    let arguments = ["build", "--quiet", "--release", "-p", "simulations", "--example", "mechanical"];
    let mut build = Command::new("cargo");
    // The optimiser's last percents are not worth their time here; wrong arithmetic has to be noticed.
    build.args(arguments).current_dir(tree).env("RUSTFLAGS", "-A warnings");
    build.env("CARGO_PROFILE_RELEASE_LTO", "off").env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16");
    build.env("CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS", "true").env("CARGO_PROFILE_RELEASE_DEBUG", "0");
    if !build.status()?.success() {
        return Err("the mutants do not build".into());
    }
    let (code, output) = run(&binary(tree), "none", 30)?;
    if code != Some(0) {
        return Err(format!("without a mutant something breaks: {output}").into());
    }
    println!("without a mutant nothing breaks");
    Ok(())
}

fn binary(tree: &Path) -> PathBuf {
    tree.join("target/release/examples/mechanical")
}

fn run(binary: &Path, mutant: &str, seeds: u64) -> Result<(Option<i32>, String)> {
    let limits = format!("ulimit -c 0; ulimit -v {MEMORY}; ulimit -t {PROCESSOR_TIME}");
    let script = format!("{limits}; exec timeout {WALL_TIME} \"$0\" try --seeds {seeds}");
    let output = Command::new("sh").arg("-c").arg(script).arg(binary).env("HIVETILL_MECHANICAL", mutant).output()?;
    let signal = output.status.signal().or(output.status.code().map(|code| code - 128));
    let code = if signal == Some(TIMED_OUT.1) { Some(TIMED_OUT.0) } else { output.status.code() };
    Ok((code, String::from_utf8_lossy(&output.stdout).into_owned()))
}

/// Hunts mutants drawn by a seed, and writes what came of each to `hunted.jsonl` in the tree.
pub(crate) fn hunt(tree: &Path, count: u64, seed: u64, seeds: u64, jobs: u64) -> Result<()> {
    let tree = tree.canonicalize()?;
    let listed = listed(&tree)?;
    let mut left: Vec<usize> = (0..listed.len()).collect();
    let mut random = Random::new(seed).fork("mechanical");
    let mut drawn = Vec::new();
    while drawn.len() as u64 != count && !left.is_empty() {
        drawn.push(left.swap_remove(random.index(left.len())));
    }
    let done: BTreeSet<String> = read(&tree)?.keys().cloned().collect();
    let (code, reached) = run(&binary(&tree), "record", seeds)?;
    if code != Some(0) {
        return Err(format!("the run without a mutant ended with {code:?}").into());
    }
    let reached: BTreeSet<usize> =
        reached.lines().filter_map(|line| line.strip_prefix("reached ")?.parse().ok()).collect();
    println!("{} of {} places are passed by the library and {seeds} seeds", reached.len(), listed.len());
    let output = Mutex::new(fs::OpenOptions::new().create(true).append(true).open(tree.join(HUNTED))?);
    let next = AtomicUsize::new(0);
    let work = || -> std::result::Result<(), String> {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(number) = drawn.get(at) else { return Ok(()) };
            let name = listed[*number]["name"].as_str().unwrap_or_default();
            if done.contains(name) {
                continue;
            }
            let outcome = if reached.contains(number) {
                let (code, said) =
                    run(&binary(&tree), &number.to_string(), seeds).map_err(|error| error.to_string())?;
                match code {
                    Some(0) => "survives".to_owned(),
                    Some(code) if code == TIMED_OUT.0 => "noticed by its time: it never ends".to_owned(),
                    Some(10) => said.lines().last().unwrap_or("noticed").to_owned(),
                    code => format!("noticed by its death: {code:?}"),
                }
            } else {
                "never reached".to_owned()
            };
            println!("{:4} of {} {name}: {outcome}", at + 1, drawn.len());
            let mut line = listed[*number].clone();
            line["outcome"] = outcome.into();
            let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
            writeln!(output, "{line}").map_err(|error| error.to_string())?;
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs.max(1)).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|one| one.join().map_err(|_| "a worker panicked".to_owned())?)
    })?;
    Ok(())
}

fn listed(tree: &Path) -> Result<Vec<Value>> {
    Ok(serde_json::from_str(&fs::read_to_string(tree.join("mutants.json"))?)?)
}

/// Returns the hunted mutants by name. A tree that was grown again may give a name to another mutant: an outcome of the
/// former one is left out.
pub(crate) fn read(tree: &Path) -> Result<BTreeMap<String, Value>> {
    let name = |one: &Value| one["name"].as_str().unwrap_or_default().to_owned();
    let listed: BTreeMap<String, Value> = listed(tree)?.into_iter().map(|one| (name(&one), one)).collect();
    let mut hunted = BTreeMap::new();
    for line in fs::read_to_string(tree.join(HUNTED)).unwrap_or_default().lines() {
        let one: Value = serde_json::from_str(line)?;
        let is_same = |now: &Value| ["before", "after"].iter().all(|field| now[*field] == one[*field]);
        if listed.get(&name(&one)).is_some_and(is_same) {
            hunted.insert(name(&one), one);
        }
    }
    Ok(hunted)
}
