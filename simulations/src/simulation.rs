//! A simulation: the real actors over a simulated chain, disk, clock and clients, driven by one event queue. The process
//! exits and restarts any number of times; one script always gives the same trace.

mod access;
mod backups;
mod cluster;
mod commit_trace;
mod damage;
mod environment;
mod facade;
mod faults;
mod final_state;
mod injection_text;
mod injections;
mod model;
mod operator_view;
mod process;
mod records;
pub mod runner;
mod search;
mod stale_writes;
mod unknown_commits;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use actors::{
    Engine, Environment, Tree,
    environment::{Clock, Entropy, Probe},
};
use engine::{
    account::AccountName,
    hive::ChainId,
    ids::PaymentId,
    ledger::{TxId, memo_of},
    payment::State,
    time::Timestamp,
};
use storage::{Batch, CommitMode, EmbeddedStore, MasterKey, Options, Store, Vault, Write};
use tokio::{sync::Notify, time::Instant};

use crate::{
    client_state::{self, ClientState},
    coverage::Places,
    disk::{DiskFaults, Incident, SimDisk},
    front::{self, Endpoint},
    hive::{Hive, health::NodeHealths},
    invariants::INVARIANTS,
    observer::{End, Observer, Violation},
    options::{EPOCH_SECONDS, FEE_ACCOUNT, Fault, Setup},
    random::Random,
    receivers::{Receivers, name_of},
    script::{
        Action, ChangeableSettings, CommitOutcome, DiskFault, FaultInjection, LedgerFault, LieKind, NodeFault, Peer,
        ProcessFault, Script, StoreFault,
    },
    shared_store::SharedStore,
    sync::lock,
    trace::{Line, Source, Trace},
};

use self::process::{Process, ProcessExit, RunningStore};
pub(crate) use self::{
    facade::DurableState,
    model::RequiredOutcome,
    process::{Running, Seam},
};

/// Calls of the simulation by the engine while virtual time stands still, above which it spins.
const MAX_SPINS: u64 = 300_000;
/// How long the engine may run after its store failed, milliseconds.
const STOPS_WITHIN_MS: u64 = 5_000;

/// The result of a run.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The violation.
    pub violation: Option<Violation>,
    /// The same for every run of the same script.
    pub hash: u64,
    /// The lines of the trace, if requested.
    pub lines: Vec<Line>,
    /// Faults injected, by kind.
    pub faults: BTreeMap<&'static str, u64>,
    /// Rare states reached, by name.
    pub marks: BTreeMap<&'static str, u64>,
    /// Faults of nodes, by name and the node's position in the list.
    pub places: Places,
    /// How often each invariant was checked and held, in the order of the list.
    pub passes: Vec<u64>,
    /// Sessions that ended and whose webhooks are delivered or failed.
    pub lifecycles: u64,
    /// Sessions by state at the end.
    pub states: BTreeMap<&'static str, u64>,
    /// Virtual time that passed, milliseconds.
    pub virtual_ms: u64,
    /// Times the process started.
    pub boots: u32,
    /// Events of the trace.
    pub events: u64,
    /// Syncs of the disk.
    pub syncs: u64,
}

impl Outcome {
    /// Returns the exit code of its kind of failure: 10 safety, 11 liveness, 13 panic; 0 without one.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match &self.violation {
            None => 0,
            Some(violation) if violation.invariant == "no-panic" => 13,
            Some(violation) => {
                let found = INVARIANTS.iter().find(|one| one.name == violation.invariant);
                if found.is_some_and(|one| one.code.starts_with('L')) { 11 } else { 10 }
            }
        }
    }
}

/// A simulation. See the [module](self).
pub struct Simulation {
    pub(crate) script: Script,
    disk: SimDisk,
    hive: Mutex<Hive>,
    observer: Mutex<Observer>,
    trace: Mutex<Trace>,
    clients: Mutex<ClientState>,
    receivers: Mutex<Receivers>,
    /// The engines.
    processes: Vec<Arc<Process>>,
    /// The settings of the running engine.
    settings: Mutex<Option<actors::Settings>>,
    /// Lifetimes and grace periods by which a session may have been created: of several engines, those of each since the start,
    /// because a repeated order returns the first one's session.
    orders_by: Mutex<BTreeSet<(Duration, Duration)>>,
    streams: Mutex<RandomStreams>,
    event_queue: Mutex<EventQueue>,
    armed_faults: Mutex<ArmedFaults>,
    time: Time,
    /// Whether the process is shutting down gracefully.
    is_stopping: AtomicBool,
    event_added: Notify,
    /// Whether the run is over, where there are several engines.
    is_over: AtomicBool,
    over: Notify,
    /// The store that several engines share.
    shared_store: Mutex<Option<Arc<SharedStore>>>,
    /// Until when an engine cannot reach a peer, virtual milliseconds.
    cuts: Mutex<BTreeMap<(usize, Peer), u64>>,
    faults_on: AtomicBool,
    damaged: Mutex<Vec<damage::DamagedRow>>,
    damaged_log: Mutex<Option<damage::DamagedEntry>>,
    sealing: Mutex<Sealing>,
    backups: Mutex<backups::Backups>,
    /// Whether the disk failed since the process started.
    disk_failed: AtomicBool,
    /// Sessions that only one honest party touches, without faults that explain a refusal.
    required: BTreeMap<u32, RequiredOutcome>,
    /// Whether a majority of nodes, the disk and the process work throughout.
    is_sound: bool,
}

struct RandomStreams {
    queries: Random,
    store: Random,
    clients: Random,
    process: Random,
    clock: Random,
    market: Random,
    host: Random,
    rows: Random,
    keys: Random,
    backups: Random,
    /// Draws which engine a client calls, and which one a fault affects.
    engines: Random,
    /// Draws faults between several engines and what they share.
    cluster: Random,
    /// The network to the shared store.
    network: Random,
    leaving: Random,
    stale: Random,
    records: Random,
    /// Kills the agent with a wallet.
    wallets: Random,
}

/// The virtual time.
#[derive(Default)]
struct Time {
    /// When the process started.
    base_ms: AtomicU64,
    /// The runtime's clock at that time; none between two processes.
    started: Mutex<Option<Instant>>,
    /// The sum of the two, and whether it is still valid: the time is read very often.
    read_ms: AtomicU64,
    is_read: AtomicBool,
    last_ms: AtomicU64,
    spins: AtomicU64,
}

#[derive(Default)]
struct EventQueue {
    events: BTreeMap<(u64, u64), Event>,
    next: u64,
    last_finish_ms: u64,
}

#[derive(Default)]
struct ArmedFaults {
    disk_full_until: Option<u64>,
    /// Calls until a response is lost.
    lose_reply_in: Option<u64>,
    /// The latency of commits, and until when it applies.
    disk_slow: Option<(u64, u64)>,
    /// The points at which a process was killed or an actor panicked because of a step.
    struck_points: BTreeSet<&'static str>,
}

/// Which master key seals the secrets, by number: 0 is none.
struct Sealing {
    current: u8,
    previous: Option<u8>,
}

impl Sealing {
    fn vault(&self) -> Vault {
        let key = |number: u8| (number > 0).then(|| MasterKey::new([number; 32]));
        Vault::new(key(self.current), self.previous.and_then(key))
    }

    fn rotate(&mut self) {
        self.previous = Some(self.current);
        self.current = self.current.checked_add(1).unwrap_or(1);
    }
}

enum Event {
    Block,
    Register(usize),
    /// A step, how often it was tried, and the engine that it names.
    Act(Action, u32, Option<usize>),
    /// The engine is restarted once the operator's merchant is registered, so that merchants are billed.
    BeginBilling,
    Heal,
    Finish,
}

impl Simulation {
    fn new(script: Script, keeps_lines: bool) -> Arc<Self> {
        let root = Random::new(script.seed);
        let setup = &script.setup;
        let fee_account = setup.split_fee.then(|| AccountName::parse(FEE_ACCOUNT).expect("a name of ours"));
        let hive = Hive::new(setup, &root.fork("ledger"), &client_state::accounts(setup.merchants));
        let sim = Self {
            disk: SimDisk::new(root.fork("disk")),
            hive: Mutex::new(hive),
            observer: Mutex::new(Observer::new(INVARIANTS, fee_account, setup.engines > 1)),
            trace: Mutex::new(Trace::new(keeps_lines)),
            clients: Mutex::default(),
            settings: Mutex::default(),
            orders_by: Mutex::default(),
            receivers: Mutex::new(Receivers::new(&root, setup)),
            processes: (0..setup.engines.max(1))
                .map(|number| Process::new(number, &root_of(&root, number), setup))
                .collect(),
            streams: Mutex::new(RandomStreams {
                queries: root.fork("queries"),
                store: root.fork("store"),
                clients: root.fork("clients"),
                process: root.fork("process"),
                clock: root.fork("clock"),
                market: root.fork("market"),
                host: root.fork("host"),
                rows: root.fork("rows"),
                keys: root.fork("keys"),
                backups: root.fork("copies"),
                engines: root.fork("choice of engines"),
                cluster: root.fork("cluster"),
                network: root.fork("network"),
                leaving: root.fork("leaving"),
                stale: root.fork("stale"),
                records: root.fork("records"),
                wallets: root.fork("kills of wallets"),
            }),
            event_queue: Mutex::default(),
            armed_faults: Mutex::default(),
            time: Time::default(),
            is_stopping: AtomicBool::new(false),
            event_added: Notify::new(),
            is_over: AtomicBool::new(false),
            over: Notify::new(),
            shared_store: Mutex::default(),
            cuts: Mutex::default(),
            faults_on: AtomicBool::new(true),
            damaged: Mutex::default(),
            damaged_log: Mutex::default(),
            sealing: Mutex::new(Sealing { current: u8::from(script.setup.seal_secrets), previous: None }),
            backups: Mutex::default(),
            disk_failed: AtomicBool::new(false),
            required: model::required_outcomes(&script),
            is_sound: model::is_sound(&script),
            script,
        };
        {
            let mut observer = lock(&sim.observer);
            observer.prompt_ms = Simulation::prompt_ms(&sim.script);
            observer.engine_setup = model::engine_setup(&sim.script);
            observer.nodes = sim.script.setup.nodes;
            observer.has_one_chain = model::has_one_chain(&sim.script);
            observer.is_calm = model::is_calm(&sim.script);
            observer.block_interval = Duration::from_secs(sim.script.setup.block_seconds);
        }
        sim.fill_event_queue();
        sim.set_disk_faults();
        Arc::new(sim)
    }
}

/// Returns the root of the random streams of an engine.
fn root_of(root: &Random, number: usize) -> Random {
    if number == 0 { root.clone() } else { root.fork(&format!("engine {number}")) }
}

/// The chain that simulations run on.
pub const CHAIN: ChainId = ChainId::MAINNET;
