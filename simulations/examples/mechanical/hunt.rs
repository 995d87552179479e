//! The hunt: a process for each mutant, so that the system can stop one that does not end or uses too much memory.

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

use crate::{
    Result, names,
    recording::{self, Recorded, places_in},
    tree,
};

/// The exit code of `timeout`, and the signal that ends a process whose processor time is used up (`SIGXCPU`).
const TIMED_OUT: (i32, i32) = (124, 24);
/// The file of the tree that holds the outcome of every hunted mutant.
const HUNTED: &str = "hunted.jsonl";
/// The simulation that shows that a tree works.
const FIRST: &str = "seed 1";
/// Memory limit of a run, kibibytes.
const MEMORY: &str = "6000000";

/// Time limits of a run, seconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// CPU time. Wall time would depend on the load of the machine.
    processor: u64,
    /// Wall time: stops a run that waits for ever and uses no CPU time.
    wall: u64,
}

impl Limits {
    pub(crate) const WIDEST: Self = Self { processor: 600, wall: 3_600 };

    /// Returns the limits for simulations with this duration without a mutant.
    fn of(took_ms: u64) -> Self {
        let processor = 60 + took_ms / 250;
        Self { processor, wall: 8 * processor }
    }
}

/// Which mutants are hunted.
#[derive(Debug, Clone)]
pub(crate) enum Which {
    /// Some, drawn by a seed.
    Drawn { count: u64, seed: u64 },
    /// Those whose names a file contains.
    Of(PathBuf),
    /// Those that were hunted and survived.
    Again,
}

/// Writes the tree, its list of mutants, and compiles it.
pub(crate) fn grow(root: &Path, tree: &Path) -> Result<()> {
    fs::create_dir_all(tree)?;
    let tree = tree.canonicalize()?;
    let mutants = tree::grow(root, &tree, |line| println!("{line}"))?;
    let listed: Vec<Value> = mutants
        .iter()
        .zip(names::of(&mutants))
        .map(|(one, name)| json!({ "name": name, "file": one.file, "line": one.line }))
        .collect();
    fs::write(tree.join("mutants.json"), serde_json::to_string_pretty(&listed)?)?;
    println!("{} mutants compile; an optimised build of them follows", listed.len());
    if !tree::cargo("build", &tree).status()?.success() {
        return Err("the mutants do not build".into());
    }
    let (code, output) = run(&tree, "none", &[FIRST], Limits::WIDEST)?;
    if code != Some(0) {
        return Err(format!("an invariant breaks without a mutant: {output}").into());
    }
    println!("no invariant breaks without a mutant");
    Ok(())
}

pub(crate) fn binary(tree: &Path) -> PathBuf {
    tree.join("target/release/examples/mechanical")
}

/// Runs simulations with a mutant. Returns the exit code and the output.
pub(crate) fn run(tree: &Path, mutant: &str, simulations: &[&str], limits: Limits) -> Result<(Option<i32>, String)> {
    let mut list = tempfile::NamedTempFile::new()?;
    simulations.iter().try_for_each(|name| writeln!(list, "{name}"))?;
    let Limits { processor, wall } = limits;
    let set = format!("ulimit -c 0; ulimit -v {MEMORY}; ulimit -t {processor}");
    let script = format!("{set}; exec timeout {wall} \"$0\" try \"$1\"");
    let mut command = Command::new("sh");
    command.arg("-c").arg(script).arg(binary(tree)).arg(list.path()).env("HIVETILL_MECHANICAL", mutant);
    let output = command.output()?;
    let signal = output.status.signal().or(output.status.code().map(|code| code - 128));
    let code = if signal == Some(TIMED_OUT.1) { Some(TIMED_OUT.0) } else { output.status.code() };
    Ok((code, String::from_utf8_lossy(&output.stdout).into_owned()))
}

/// Hunts mutants, and writes the outcome of each to `hunted.jsonl` in the tree.
pub(crate) fn hunt(tree: &Path, which: &Which, seeds: u64, jobs: u64) -> Result<()> {
    let tree = tree.canonicalize()?;
    let listed = listed(&tree)?;
    let wanted = chosen(&tree, which, &listed)?;
    let recorded = recording::of(&tree, seeds, jobs)?;
    let passed: BTreeSet<usize> = recorded.iter().flat_map(|one| &one.passes).copied().collect();
    println!("{} of {} places are passed by the library and {seeds} seeds", passed.len(), listed.len());
    let output = Mutex::new(fs::OpenOptions::new().create(true).append(true).open(tree.join(HUNTED))?);
    let next = AtomicUsize::new(0);
    let work = || -> std::result::Result<(), String> {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(number) = wanted.get(at) else { return Ok(()) };
            let outcome = outcome(&tree, *number, &recorded).map_err(|error| error.to_string())?;
            let name = listed[*number]["name"].as_str().unwrap_or_default();
            println!("{:4} of {} {name}: {outcome}", at + 1, wanted.len());
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

/// Returns the numbers of the mutants to hunt; those that were drawn and hunted before are left out.
fn chosen(tree: &Path, which: &Which, listed: &[Value]) -> Result<Vec<usize>> {
    let hunted = read(tree)?;
    let name = |number: &usize| listed[*number]["name"].as_str().unwrap_or_default();
    let all = 0..listed.len();
    Ok(match which {
        Which::Drawn { count, seed } => {
            let mut left: Vec<usize> = all.collect();
            let mut random = Random::new(*seed).fork("mechanical");
            let mut drawn = Vec::new();
            while drawn.len() as u64 != *count && !left.is_empty() {
                drawn.push(left.swap_remove(random.index(left.len())));
            }
            drawn.retain(|number| !hunted.contains_key(name(number)));
            drawn
        }
        Which::Of(file) => {
            let text = fs::read_to_string(file)?.replace("\\|", "|");
            all.filter(|number| text.contains(name(number))).collect()
        }
        Which::Again => {
            let is_left = |one: &Value| !one["outcome"].as_str().is_some_and(|outcome| outcome.starts_with("killed"));
            all.filter(|number| hunted.get(name(number)).is_some_and(is_left)).collect()
        }
    })
}

/// Runs the simulations that pass a mutant's place, the quickest first.
fn outcome(tree: &Path, number: usize, recorded: &[Recorded]) -> Result<String> {
    let (mut passing, others): (Vec<_>, Vec<_>) = recorded.iter().partition(|one| one.passes.contains(&number));
    if passing.is_empty() {
        return Ok("never reached".to_owned());
    }
    passing.sort_by_key(|one| one.took_ms);
    let simulations: Vec<&str> = passing.iter().map(|one| one.name.as_str()).collect();
    let limits = Limits::of(passing.iter().map(|one| one.took_ms).sum());
    let (code, output) = run(tree, &number.to_string(), &simulations, limits)?;
    Ok(match code {
        Some(0) => {
            let all: BTreeSet<&String> = recorded.iter().flat_map(|one| &one.reaches).collect();
            let reached = places_in(&output)?;
            let is_missed = |place: &&String| {
                !reached.contains(*place) && !others.iter().any(|other| other.reaches.contains(*place))
            };
            match all.into_iter().find(is_missed) {
                Some(place) => format!("killed by all seeds: never {place}"),
                None => "survives".to_owned(),
            }
        }
        Some(code) if code == TIMED_OUT.0 => "killed by its time limit: it does not end".to_owned(),
        // The text of a panic may have several lines.
        Some(10) => output.lines().rev().find(|line| line.starts_with("killed")).unwrap_or("killed").to_owned(),
        // The run itself failed, for example without a file that it needs: that is not a result about the mutant.
        Some(1) => return Err(format!("the simulations cannot run: {output}").into()),
        code => format!("killed by its exit code: {code:?}"),
    })
}

/// Returns the mutants of a tree, in the order of their numbers.
pub(crate) fn listed(tree: &Path) -> Result<Vec<Value>> {
    Ok(serde_json::from_str(&fs::read_to_string(tree.join("mutants.json"))?)?)
}

/// Returns the hunted mutants that the tree still has, by name, each with its last outcome.
pub(crate) fn read(tree: &Path) -> Result<BTreeMap<String, Value>> {
    let name = |one: &Value| one["name"].as_str().unwrap_or_default().to_owned();
    let listed: BTreeSet<String> = listed(tree)?.iter().map(name).collect();
    let mut hunted = BTreeMap::new();
    for line in fs::read_to_string(tree.join(HUNTED)).unwrap_or_default().lines() {
        let one: Value = serde_json::from_str(line)?;
        if listed.contains(&name(&one)) {
            hunted.insert(name(&one), one);
        }
    }
    Ok(hunted)
}
