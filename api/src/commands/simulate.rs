//! `simulate`: payment lifecycles from a seed or a scenario file, under injected faults.

mod mutant_flag;

use std::{
    io::{IsTerminal as _, Seek as _, Write as _},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use simulations::{
    campaign::{self, Campaign, Summary},
    mutants::Hunt,
    plan::{self, Mix},
    report, runner, scenario,
    script::Script,
    shrink,
};

use self::mutant_flag::{MutantFlag, known_mutants};
use super::{failure::Failure, output::print, shutdown};
use crate::{in_process, version};

/// The exit codes of a simulation, in addition to those of the program.
const EXIT_CODES: &str = "Exit codes: 0 all invariants held, 10 a safety invariant was violated, 11 a liveness invariant was violated, \
     12 a seed produced two different traces, 13 a panic, 14 an expected event did not occur, 1 any other failure.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXIT_CODES)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Run scenario files
    Run(RunArgs),
    /// Run many seeds
    Campaign(CampaignArgs),
    /// Run one seed again and print its trace
    Replay(ReplayArgs),
    /// Reduce a failing seed or scenario to a small scenario file
    Shrink(ShrinkArgs),
    /// Run seeds several times, in this process and a fresh one, and compare the traces
    CheckDeterminism(DeterminismArgs),
    /// Enable mutants one at a time, and report how many seeds it takes to kill each
    Mutants(MutantArgs),
}

#[derive(Debug, clap::Args)]
struct RunArgs {
    /// The scenario files
    #[arg(required = true)]
    scenarios: Vec<PathBuf>,
    /// Seed to use instead of the one in the file
    #[arg(long)]
    seed: Option<u64>,
    /// Write a sequence diagram to this file
    #[arg(long)]
    html: Option<PathBuf>,
    /// Print the whole trace
    #[arg(long)]
    trace: bool,
    #[command(flatten)]
    mutant: MutantFlag,
}

#[derive(Debug, Clone, clap::Args)]
struct Seeded {
    /// Sessions in each run
    #[arg(long, default_value_t = 50)]
    payments: u32,
    /// Draw the faults of each run at random (default: two runs of three; the third has all faults)
    #[arg(long, conflicts_with = "all_on")]
    swarm: bool,
    /// Enable all faults
    #[arg(long)]
    all_on: bool,
    /// Disable all faults
    #[arg(long, conflicts_with_all = ["all_on", "swarm"])]
    calm: bool,
    /// Fail only a minority of the nodes, at random points: nothing valid may be refused or late
    #[arg(long, conflicts_with_all = ["all_on", "swarm", "calm"])]
    minority: bool,
    /// Run for 6 to 40 days each, with a block a minute
    #[arg(long, conflicts_with_all = ["all_on", "swarm", "calm", "minority"])]
    days: bool,
    /// Damage only rows on disk: nothing else may be affected
    #[arg(long, conflicts_with_all = ["all_on", "swarm", "calm", "minority", "days"])]
    damage: bool,
    /// Call the REST and gRPC interfaces with valid and invalid requests, and check every response
    #[arg(long, conflicts_with_all = ["all_on", "swarm", "calm", "minority", "days"])]
    facade: bool,
    /// Number of engines, 1 to 5; several share one store
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..=5))]
    engines: Option<u8>,
}

impl Seeded {
    /// Returns the number of engines; `None` lets the seed decide.
    fn engines(&self) -> Option<usize> {
        self.engines.map(usize::from)
    }

    /// Returns the script of a seed.
    fn script(&self, seed: u64) -> Script {
        plan::of_seed_with(seed, self.payments, self.mix(), self.engines())
    }

    const fn mix(&self) -> Mix {
        match self {
            Self { swarm: true, .. } => Mix::Swarm,
            Self { all_on: true, .. } => Mix::AllOn,
            Self { calm: true, .. } => Mix::None,
            Self { minority: true, .. } => Mix::Nodes,
            Self { days: true, .. } => Mix::Days,
            Self { damage: true, .. } => Mix::Rows,
            Self { facade: true, .. } => Mix::Facade,
            Self { engines: Some(2..), .. } => Mix::Engines,
            _ => Mix::Both,
        }
    }

    fn flags(&self) -> String {
        let mix = match self.mix() {
            Mix::Swarm => " --swarm",
            Mix::AllOn => " --all-on",
            Mix::None => " --calm",
            Mix::Nodes => " --minority",
            Mix::Days => " --days",
            Mix::Rows => " --damage",
            Mix::Facade => " --facade",
            Mix::Both | Mix::Engines => "",
        };
        let engines = self.engines.map_or(String::new(), |engines| format!(" --engines {engines}"));
        format!("--payments {}{mix}{engines}", self.payments)
    }
}

#[derive(Debug, clap::Args)]
struct CampaignArgs {
    #[command(flatten)]
    seeded: Seeded,
    /// Number of runs
    #[arg(long, default_value_t = 200)]
    runs: u64,
    /// First seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Stop at the first failure
    #[arg(long)]
    until_fail: bool,
    /// Number of threads
    #[arg(long, default_value_t = 1)]
    jobs: usize,
    /// Maximum duration, such as 10m
    #[arg(long, value_parser = super::duration::parse)]
    time: Option<Duration>,
    /// Write an HTML report to this file, with a sequence diagram of the first failure
    #[arg(long)]
    html: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct ReplayArgs {
    #[command(flatten)]
    seeded: Seeded,
    /// The seed
    #[arg(long)]
    seed: u64,
    /// Print the whole trace
    #[arg(long)]
    trace: bool,
    /// Print the trace up to this time only, such as 1110804ms
    #[arg(long, value_parser = super::duration::parse, requires = "trace")]
    until: Option<Duration>,
    /// Write a sequence diagram to this file
    #[arg(long)]
    html: Option<PathBuf>,
    /// Print only the hash of the trace
    #[arg(long, hide = true)]
    hash: bool,
    #[command(flatten)]
    mutant: MutantFlag,
}

#[derive(Debug, clap::Args)]
struct ShrinkArgs {
    #[command(flatten)]
    seeded: Seeded,
    /// Failing seed
    #[arg(long, required_unless_present = "scenario")]
    seed: Option<u64>,
    /// Failing scenario
    #[arg(long, conflicts_with = "seed")]
    scenario: Option<PathBuf>,
    /// File for the reduced scenario
    #[arg(short, long)]
    output: PathBuf,
    /// Maximum number of runs
    #[arg(long, default_value_t = 2_000)]
    max_runs: u32,
    #[command(flatten)]
    mutant: MutantFlag,
}

#[derive(Debug, clap::Args)]
struct DeterminismArgs {
    #[command(flatten)]
    seeded: Seeded,
    /// First seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of seeds
    #[arg(long, default_value_t = 1)]
    seeds: u64,
    /// Runs of each seed in this process
    #[arg(long, default_value_t = 2)]
    times: u32,
    /// Number of threads
    #[arg(long, default_value_t = 1)]
    jobs: usize,
}

#[derive(Debug, clap::Args)]
struct MutantArgs {
    /// Names of the mutants; by default all
    names: Vec<String>,
    /// Scenario files to try if no seed kills a mutant
    #[arg(long, num_args = 1..)]
    scenarios: Vec<PathBuf>,
    /// Maximum seeds for each mutant
    #[arg(long, default_value_t = 100)]
    seeds: u64,
    /// Sessions in each run
    #[arg(long, default_value_t = 50)]
    payments: u32,
    /// Number of threads
    #[arg(long, default_value_t = 1)]
    jobs: usize,
}

/// Replaces this process by one whose allocator keeps freed memory: simulations allocate and free constantly, and page faults
/// cost a tenth of a campaign. The allocator reads its settings only before `main`.
#[cfg(unix)]
pub(super) fn keep_memory() {
    use std::os::unix::process::CommandExt as _;

    const PURGE_DELAY: &str = "MIMALLOC_PURGE_DELAY";
    if std::env::var_os(PURGE_DELAY).is_some() {
        return;
    }
    let Ok(program) = std::env::current_exe() else { return };
    // Returns only on failure; then the process continues with the default settings of the allocator.
    let _ = std::process::Command::new(program).args(std::env::args_os().skip(1)).env(PURGE_DELAY, "-1").exec();
}

/// Runs a subcommand. It runs on threads without a runtime, because every simulation has its own.
pub(super) async fn run(args: Args) -> Result<(), Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let signalled = Arc::clone(&stop);
    let (installed, is_installed) = tokio::sync::oneshot::channel();
    tokio::spawn(async move {
        let report_installed = async {
            let _ = installed.send(());
            std::future::pending::<()>().await;
        };
        tokio::select! {
            biased;
            () = shutdown::signal() => {}
            () = report_installed => {}
        }
        signalled.store(true, Ordering::Relaxed);
        shutdown::signal().await;
        // A second signal aborts the running simulations.
        std::process::exit(130);
    });
    // The signal handlers are installed before any output, after which a caller may send a signal.
    let _ = is_installed.await;
    let (done, finished) = tokio::sync::oneshot::channel();
    let work = std::thread::Builder::new().name("simulate".to_owned()).spawn(move || {
        let _ = done.send(simulate(&args.command, &stop));
    });
    work.map_err(|error| Failure::Other(format!("cannot start a thread: {error}")))?;
    let code = finished.await.map_err(|_| Failure::Other("the simulation thread panicked".to_owned()))??;
    if code == 0 { Ok(()) } else { Err(Failure::Simulation(code)) }
}

/// Runs a subcommand until it is done or `stop` is set. Returns the exit code.
fn simulate(command: &Command, stop: &AtomicBool) -> Result<u8, Failure> {
    in_process::install();
    match command {
        Command::Run(args) => run_scenarios(args, stop),
        Command::Campaign(args) => run_campaign(args, stop),
        Command::Replay(args) => replay(args),
        Command::Shrink(args) => shrink_one(args, stop),
        Command::CheckDeterminism(args) => check_determinism(args, stop),
        Command::Mutants(args) => mutants(args, stop),
    }
}

fn run_scenarios(args: &RunArgs, stop: &AtomicBool) -> Result<u8, Failure> {
    args.mutant.enable()?;
    let mut page = args.html.as_deref().map(OutputFile::create).transpose()?;
    // All files are parsed before the first run, so that a syntax error is reported at once.
    let mut scripts = Vec::new();
    for path in &args.scenarios {
        let mut script = read_scenario(path)?;
        script.seed = args.seed.unwrap_or(script.seed);
        scripts.push((path, script));
    }
    let mut worst = 0;
    for (path, script) in scripts {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let replay = format!("hivetill simulate run {} --seed {}{}", path.display(), script.seed, args.mutant);
        let code = run_and_report(&script, &replay, args.trace, None, page.as_mut())?;
        if code == 0 {
            print(&format!("ok      {}\n", script.name))?;
        }
        worst = worst.max(code);
    }
    Ok(worst)
}

/// Runs a script with a trace, and prints a violation. Returns the exit code.
fn run_and_report(
    script: &Script,
    replay: &str,
    trace: bool,
    until: Option<Duration>,
    page: Option<&mut OutputFile>,
) -> Result<u8, Failure> {
    let outcome = runner::run(script, true);
    if trace {
        let until_ms = until.map_or(u64::MAX, |until| u64::try_from(until.as_millis()).unwrap_or(u64::MAX));
        for line in outcome.lines.iter().filter(|line| line.at_ms <= until_ms) {
            print(&format!("{}\n", report::named(script, &line.to_string())))?;
        }
    }
    if let Some(page) = page {
        page.write(&report::html(script, &outcome, &build(), replay))?;
    }
    if let Some(violation) = &outcome.violation {
        print(&report::failure(script, &outcome, violation, &build(), replay))?;
    }
    Ok(outcome.exit_code())
}

fn run_campaign(args: &CampaignArgs, stop: &AtomicBool) -> Result<u8, Failure> {
    let mut page = args.html.as_deref().map(OutputFile::create).transpose()?;
    let campaign = Campaign {
        first_seed: args.seed,
        runs: args.runs,
        payments: args.seeded.payments,
        mix: args.seeded.mix(),
        engines: args.seeded.engines(),
        jobs: args.jobs,
        until_fail: args.until_fail,
        time: args.time,
    };
    let shows = std::io::stderr().is_terminal();
    let summary = campaign::run(&campaign, stop, |summary| {
        if shows {
            progress(summary, &campaign);
        }
    });
    if shows {
        let _ = write!(std::io::stderr(), "\r\x1b[K");
    }
    print(&report::summary(&summary, campaign.mix, campaign.payments, &build()))?;
    if let Some(page) = page.as_mut().filter(|_| summary.failures.is_empty()) {
        page.write(&report::campaign_html(&summary, campaign.mix, campaign.payments, &build()))?;
    }
    if let Some(failure) = summary.failures.first() {
        let script = args.seeded.script(failure.seed);
        let replay = format!("hivetill simulate replay --seed {} {}", failure.seed, args.seeded.flags());
        print("\n")?;
        run_and_report(&script, &replay, false, None, page.as_mut())?;
        print(&format!(
            "\nto reduce it: hivetill simulate shrink --seed {} {} -o small.toml\n",
            failure.seed,
            args.seeded.flags()
        ))?;
    }
    Ok(summary.exit_code())
}

/// Prints the progress of a campaign to standard error.
fn progress(summary: &Summary, campaign: &Campaign) {
    let done_ms = u64::try_from(summary.took.as_millis()).unwrap_or(u64::MAX);
    let left = campaign.runs.saturating_sub(summary.runs);
    let by_runs = done_ms / summary.runs.max(1) * left / 1_000;
    let by_time = campaign.time.map_or(u64::MAX, |limit| limit.saturating_sub(summary.took).as_secs());
    let line = format!(
        "\r\x1b[K{}/{} runs, {} lifecycles ({}/s), {} failed, about {} s left",
        summary.runs,
        campaign.runs,
        summary.lifecycles,
        summary.lifecycles_per_second(),
        summary.failures.len(),
        by_runs.min(by_time)
    );
    // A failed write of the progress does not abort the campaign.
    let _ = std::io::stderr().write_all(line.as_bytes());
}

fn replay(args: &ReplayArgs) -> Result<u8, Failure> {
    args.mutant.enable()?;
    let script = args.seeded.script(args.seed);
    if args.hash {
        print(&format!("{:016x}\n", runner::run(&script, false).hash))?;
        return Ok(0);
    }
    let mut page = args.html.as_deref().map(OutputFile::create).transpose()?;
    let replay = format!("hivetill simulate replay --seed {} {}{}", args.seed, args.seeded.flags(), args.mutant);
    let code = run_and_report(&script, &replay, args.trace, args.until, page.as_mut())?;
    if code == 0 {
        print(&format!("seed {}: all invariants hold\n", args.seed))?;
    }
    Ok(code)
}

fn shrink_one(args: &ShrinkArgs, stop: &AtomicBool) -> Result<u8, Failure> {
    args.mutant.enable()?;
    let mut output = OutputFile::create(&args.output)?;
    let script = match (&args.scenario, args.seed) {
        (Some(path), _) => read_scenario(path)?,
        (None, Some(seed)) => args.seeded.script(seed),
        (None, None) => return Err(Failure::Other("--seed or --scenario is required".to_owned())),
    };
    let Some(small) = shrink::shrink(&script, args.max_runs, stop) else {
        return Err(Failure::Other(format!("{}: all invariants hold, nothing to shrink", script.name)));
    };
    output.write(&scenario::write(&small.script))?;
    print(&format!(
        "{} still fails with {} steps and {} kinds of fault, after {} runs: {}\n",
        small.invariant,
        small.script.steps.len(),
        small.script.faults.on().count(),
        small.runs,
        args.output.display()
    ))?;
    Ok(0)
}

fn check_determinism(args: &DeterminismArgs, stop: &AtomicBool) -> Result<u8, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::Other(format!("cannot find the path of this program: {error}")))?;
    let next = AtomicU64::new(0);
    let (checked, failure) = (AtomicU64::new(0), Mutex::new(None));
    let has_failed = || failure.lock().unwrap_or_else(PoisonError::into_inner).is_some();
    let work = || {
        while !stop.load(Ordering::Relaxed) && !has_failed() {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= args.seeds {
                return;
            }
            match check_seed(args, args.seed.wrapping_add(number), &program) {
                Ok(None) => drop(checked.fetch_add(1, Ordering::Relaxed)),
                other => drop(failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(other)),
            }
        }
    };
    std::thread::scope(|scope| {
        for number in 0..args.jobs.max(1) {
            let spawned = std::thread::Builder::new().name(format!("seeds-{number}")).spawn_scoped(scope, work);
            if spawned.is_err() && number == 0 {
                work();
            }
        }
    });
    let failure = failure.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(difference) = failure.transpose()?.flatten() {
        print(&difference)?;
        return Ok(12);
    }
    let (checked, times) = (checked.into_inner(), args.times.max(1));
    let early = if checked < args.seeds { ", stopped early" } else { "" };
    print(&format!(
        "{checked} seeds produced the same trace {times} times in this process and once in a new process{early}\n"
    ))?;
    Ok(0)
}

/// Runs one seed several times in this process and once in a new process. Returns the difference, if there is one.
fn check_seed(args: &DeterminismArgs, seed: u64, program: &Path) -> Result<Option<String>, Failure> {
    let script = args.seeded.script(seed);
    let first = runner::run(&script, false).hash;
    for _ in 1..args.times.max(1) {
        if runner::run(&script, false).hash != first {
            return Ok(Some(difference(&script)));
        }
    }
    let flags = args.seeded.flags();
    let fresh = std::process::Command::new(program)
        .args(["simulate", "replay", "--hash", "--seed", &seed.to_string()])
        .args(flags.split(' ').filter(|flag| !flag.is_empty()))
        .output()
        .map_err(|error| Failure::Other(format!("cannot start this program: {error}")))?;
    let hash = String::from_utf8_lossy(&fresh.stdout).trim().to_owned();
    let is_same = hash == format!("{first:016x}");
    Ok((!is_same).then(|| format!("seed {seed}: {first:016x} in this process, {hash:?} in a new process\n")))
}

/// Returns the first line in which the traces of two runs of a script differ.
fn difference(script: &Script) -> String {
    let (one, other) = (runner::run(script, true), runner::run(script, true));
    let first = one.lines.iter().zip(&other.lines).find(|(one, other)| one != other);
    match first {
        Some((one, other)) => format!("seed {} has two traces:\n{one}\n{other}\n", script.seed),
        None => format!("seed {}: the same trace, but a different disk or duration\n", script.seed),
    }
}

fn mutants(args: &MutantArgs, stop: &AtomicBool) -> Result<u8, Failure> {
    let known = known_mutants()?;
    if let Some(unknown) = args.names.iter().find(|wanted| !known.iter().any(|(name, _)| name == wanted)) {
        return Err(Failure::Other(format!("there is no mutant {unknown:?}; without names all are tested")));
    }
    let is_wanted = |name: &str| args.names.is_empty() || args.names.iter().any(|wanted| wanted == name);
    let mutants: Vec<_> = known.iter().copied().filter(|(name, _)| is_wanted(name)).collect();
    let scenarios: Vec<Script> = args.scenarios.iter().map(|path| read_scenario(path)).collect::<Result<_, _>>()?;
    let hunt = Hunt { seeds: args.seeds, payments: args.payments, jobs: args.jobs, scenarios: &scenarios };
    let hunted = simulations::mutants::hunt_all(&mutants, hunt, stop, |one| {
        // A failed write is reported by the last one.
        let _ = print(&format!("{one}\n"));
    });
    let survivors = hunted.iter().filter(|one| one.killed.is_none()).count();
    let median = simulations::mutants::median(&hunted).map_or("none".to_owned(), |seeds| format!("{seeds} seeds"));
    let early = if hunted.len() < mutants.len() { ", stopped early" } else { "" };
    print(&format!("{} killed, {survivors} survive, median {median}{early}\n", hunted.len() - survivors))?;
    Ok(if survivors == 0 { 0 } else { 10 })
}

fn read_scenario(path: &Path) -> Result<Script, Failure> {
    let file = |reason: String| Failure::File { path: path.to_owned(), reason };
    let text = std::fs::read_to_string(path).map_err(|error| file(error.to_string()))?;
    scenario::read(&text).map_err(|error| file(error.to_string()))
}

/// An output file, opened before the simulation starts, so that an invalid path is reported at once.
struct OutputFile {
    path: PathBuf,
    file: std::fs::File,
}

impl OutputFile {
    fn create(path: &Path) -> Result<Self, Failure> {
        // The existing content is kept until the new content is written.
        let file = std::fs::OpenOptions::new().create(true).write(true).truncate(false).open(path);
        let file = file.map_err(|error| Failure::File { path: path.to_owned(), reason: error.to_string() })?;
        Ok(Self { path: path.to_owned(), file })
    }

    fn write(&mut self, text: &str) -> Result<(), Failure> {
        let failed = |error: std::io::Error| Failure::File { path: self.path.clone(), reason: error.to_string() };
        self.file.set_len(0).map_err(failed)?;
        self.file.rewind().map_err(failed)?;
        self.file.write_all(text.as_bytes()).map_err(failed)
    }
}

/// Returns the version and commit of the build, which a seed needs to be reproduced.
fn build() -> String {
    format!("hivetill {} at commit {}", version::VERSION, version::commit())
}
