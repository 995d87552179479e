//! The simulation: the real tree of actors over a simulated chain, disk, clock and merchants, driven by one agenda, killed
//! and booted again as often as need be, and the same every time for one script.

mod access;
mod backups;
mod commit_trace;
mod damage;
mod environment;
mod facade;
mod faults;
mod final_state;
mod injection_text;
mod injections;
mod model;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use actors::{
    Engine, Environment, Tree,
    environment::{Clock, Entropy, Node, Probe, WebhookTransport},
};
use engine::{
    account::AccountName,
    hive::ChainId,
    ids::PaymentId,
    ledger::{TxId, memo_of},
    payment::State,
    time::Timestamp,
};
use futures_util::FutureExt as _;
use storage::{Batch, CommitMode, EmbeddedStore, MasterKey, Options, Vault, Write};
use tokio::{sync::Notify, time::Instant};

use crate::{
    clients::{self, ClientState},
    coverage::Places,
    disk::{DiskFaults, Incident, SimDisk},
    front::{self, Endpoint},
    hive::{Hive, SimNode},
    observer::{End, Observer, Violation},
    options::{FEE_ACCOUNT, Fault, Setup},
    random::Random,
    receivers::{Receivers, SimWebhooks, name_of},
    script::{
        Action, ChangeableSettings, DiskFault, FaultInjection, LedgerFault, LieKind, NodeFault, ProcessFault, Script,
    },
    store::{SimStore, is_applied},
    trace::{Lane, Line, Trace},
};

use self::environment::{SimClock, SimEntropy, SimProbe};
pub(crate) use self::{environment::lock, facade::DurableState, model::RequiredOutcome};

/// When every simulation begins, seconds since 1970: an hour before the end of a day (UTC), so that most simulations see one end.
pub const EPOCH_SECONDS: u64 = 1_800_054_000;
/// Calls of the simulation by the engine while virtual time stands still, above which it spins.
const MAX_SPINS: u64 = 3_000_000;
/// How long a boot may take when nothing is wrong.
const BOOT_LIMIT: Duration = Duration::from_secs(60);
/// How long a stop in order may take, whatever goes wrong meanwhile.
const STOP_LIMIT: Duration = Duration::from_secs(600);
/// How long the engine may go on after a read of its store failed with an I/O error, milliseconds.
const STOPS_WITHIN_MS: u64 = 5_000;
/// Boots in one run; more are a crash loop that virtual time does not end.
const MAX_BOOTS: u32 = 2_000;

/// What came of a run.
#[derive(Debug, Default)]
pub struct Outcome {
    /// What did not hold.
    pub violation: Option<Violation>,
    /// The same for every run of the same script.
    pub hash: u64,
    /// Everything that happened, where lines were asked for.
    pub lines: Vec<Line>,
    /// Faults injected, by kind.
    pub faults: BTreeMap<&'static str, u64>,
    /// Rare places reached, by name.
    pub marks: BTreeMap<&'static str, u64>,
    /// Faults of nodes, by what they are and the node's place in the list.
    pub places: Places,
    /// How often each invariant was asked and held, in the order of the list.
    pub passes: Vec<u64>,
    /// Sessions that ended and whose webhooks are settled.
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
                let found = crate::invariants::INVARIANTS.iter().find(|one| one.name == violation.invariant);
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
    /// How the engine is set up when it starts next.
    setup: Mutex<Setup>,
    /// The running process's.
    store: Mutex<Option<Arc<SimStore>>>,
    /// The running process's, where clients call through one.
    endpoint: Mutex<Option<Arc<dyn Endpoint>>>,
    /// When the process was ready, virtual milliseconds.
    booted_ms: AtomicU64,
    entropy: Mutex<Random>,
    streams: Mutex<RandomStreams>,
    event_queue: Mutex<EventQueue>,
    armed_faults: Mutex<ArmedFaults>,
    time: Time,
    has_exited: AtomicBool,
    exited: Notify,
    event_added: Notify,
    exit: Mutex<Option<ProcessExit>>,
    faults_on: AtomicBool,
    damaged: Mutex<Vec<damage::DamagedRow>>,
    damaged_log: Mutex<Option<damage::DamagedEntry>>,
    sealing: Mutex<Sealing>,
    backups: Mutex<backups::Backups>,
    /// Whether the disk failed since the process started.
    disk_failed: AtomicBool,
    /// When a read of the store failed first since the process started, virtual milliseconds; `u64::MAX` without one.
    read_failed_ms: AtomicU64,
    /// Sessions that one honest party touches, where nothing excuses a refusal.
    required: BTreeMap<u32, RequiredOutcome>,
}

struct RandomStreams {
    queries: Random,
    store: Random,
    clients: Random,
    points: Random,
    process: Random,
    clock: Random,
    market: Random,
    host: Random,
    rows: Random,
    keys: Random,
    backups: Random,
}

/// Where virtual time stands.
#[derive(Default)]
struct Time {
    /// When the process started.
    base_ms: AtomicU64,
    /// The runtime's clock then; none between two processes.
    started: Mutex<Option<Instant>>,
    /// What the two made together, and whether it still holds: everybody asks for the time all the time.
    read_ms: AtomicU64,
    is_read: AtomicBool,
    skew_ms: AtomicI64,
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
    kill_at: VecDeque<String>,
    panic_at: VecDeque<String>,
    disk_full_until: Option<u64>,
    /// Calls until one is left without an answer.
    lose_reply_in: Option<u64>,
    /// How long the process is about to stand still.
    freeze_ms: Option<u64>,
    /// How long a commit may take, and until when.
    disk_slow: Option<(u64, u64)>,
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
    Act(Action, u32),
    Heal,
    Finish,
}

/// Why a process ends.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ProcessExit {
    /// The power went.
    PowerCut,
    /// It was killed; the disk's cache lives on.
    Killed,
    /// It was stopped in order.
    Restart,
    /// It gave up.
    GaveUp(String),
    /// It could not start.
    NoStart(String),
    /// The run is over.
    Over,
}

/// Runs a script from its first to its last moment. Must not be called inside a runtime.
///
/// # Panics
/// If the operating system gives no timer.
#[must_use]
pub fn run(script: &Script, keeps_lines: bool) -> Outcome {
    let _watch = crate::panics::watch();
    let sim = Simulation::new(script.clone(), keeps_lines);
    loop {
        let sleeper = Arc::clone(&sim);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .on_thread_unpark(move || sleeper.time.moved())
            .build();
        let runtime = runtime.expect("a runtime without sockets needs only memory");
        let exit = runtime.block_on(async {
            let exit = sim.clone().live().await;
            // The power goes first: what a dropped task still wants to write must not arrive.
            sim.disk.detach();
            sim.time.stop();
            *lock(&sim.store) = None;
            *lock(&sim.endpoint) = None;
            exit
        });
        drop(runtime);
        sim.after(&exit);
        if exit == ProcessExit::Over {
            return sim.outcome();
        }
    }
}

impl Simulation {
    fn new(script: Script, keeps_lines: bool) -> Arc<Self> {
        let root = Random::new(script.seed);
        let setup = &script.setup;
        let fee_account = setup.split_fee.then(|| AccountName::parse(FEE_ACCOUNT).expect("a name of ours"));
        let hive = Hive::new(setup, &root.fork("ledger"), &clients::accounts(setup.merchants));
        let sim = Self {
            disk: SimDisk::new(root.fork("disk")),
            hive: Mutex::new(hive),
            observer: Mutex::new(Observer::new(fee_account)),
            trace: Mutex::new(Trace::new(keeps_lines)),
            clients: Mutex::default(),
            setup: Mutex::new(script.setup.clone()),
            receivers: Mutex::new(Receivers::new(&root, setup)),
            store: Mutex::default(),
            endpoint: Mutex::default(),
            booted_ms: AtomicU64::new(0),
            entropy: Mutex::new(root.fork("entropy")),
            streams: Mutex::new(RandomStreams {
                queries: root.fork("queries"),
                store: root.fork("store"),
                clients: root.fork("clients"),
                points: root.fork("points"),
                process: root.fork("process"),
                clock: root.fork("clock"),
                market: root.fork("market"),
                host: root.fork("host"),
                rows: root.fork("rows"),
                keys: root.fork("keys"),
                backups: root.fork("copies"),
            }),
            event_queue: Mutex::default(),
            armed_faults: Mutex::default(),
            time: Time::default(),
            has_exited: AtomicBool::new(false),
            exited: Notify::new(),
            event_added: Notify::new(),
            exit: Mutex::new(None),
            faults_on: AtomicBool::new(true),
            damaged: Mutex::default(),
            damaged_log: Mutex::default(),
            sealing: Mutex::new(Sealing { current: u8::from(script.setup.seal_secrets), previous: None }),
            backups: Mutex::default(),
            disk_failed: AtomicBool::new(false),
            read_failed_ms: AtomicU64::new(u64::MAX),
            required: model::required_outcomes(&script),
            script,
        };
        {
            let mut observer = lock(&sim.observer);
            observer.prompt_ms = Simulation::prompt_ms(&sim.script);
            observer.nodes = sim.script.setup.nodes;
            observer.has_one_chain = model::has_one_chain(&sim.script);
            observer.block_interval = Duration::from_secs(sim.script.setup.block_seconds);
        }
        sim.fill_event_queue();
        sim.set_disk_faults();
        Arc::new(sim)
    }

    // ---- one process -----------------------------------------------------------------------------------------------

    /// Boots, and lives until something ends it.
    async fn live(self: Arc<Self>) -> ProcessExit {
        self.time.start();
        self.has_exited.store(false, Ordering::Relaxed);
        *lock(&self.exit) = None;
        self.read_failed_ms.store(u64::MAX, Ordering::Relaxed);
        self.catch_up();
        let booted = tokio::select! {
            biased;
            () = self.until_exit() => return self.take_exit(),
            booted = tokio::time::timeout(BOOT_LIMIT * 10, self.boot()) => booted,
        };
        let (tree, store) = match booted {
            Ok(Ok(booted)) => booted,
            Ok(Err(why)) => return if self.has_exited() { self.take_exit() } else { ProcessExit::NoStart(why) },
            Err(_) => return ProcessExit::NoStart("it took ten minutes".to_owned()),
        };
        let engine = tree.engine();
        let exit = self.drive(&tree, &engine, &store).await;
        if exit == ProcessExit::Restart {
            // What waits may still be written; nobody new is let in.
            let stopped = async {
                tree.stop().await;
                store.close().await;
            };
            tokio::select! {
                biased;
                // The power may go meanwhile, and a dead simulation responds to no caller.
                () = self.until_exit() => return self.take_exit(),
                stopped = tokio::time::timeout(STOP_LIMIT, stopped) => if stopped.is_err() {
                    let text = format!("stopping took {} s", STOP_LIMIT.as_secs());
                    self.observe(|observer| observer.violate("stop-ends", text, None));
                    return self.take_exit();
                },
            }
        }
        exit
    }

    async fn boot(self: &Arc<Self>) -> Result<(Tree, Arc<EmbeddedStore>), String> {
        let begins = Instant::now();
        self.trace_boot();
        let on_incident = {
            let sim = Arc::downgrade(self);
            let on_incident = move |incident| {
                if let Some(sim) = sim.upgrade() {
                    sim.note_disk_incident(incident);
                }
            };
            Arc::new(on_incident) as Arc<dyn Fn(Incident) + Send + Sync>
        };
        let setup = lock(&self.setup).clone();
        let Setup { cache_bytes, log_bytes, .. } = setup;
        let options = Options { cache_bytes, log_bytes, mode: CommitMode::Inline, may_create: true };
        if self.observe(|observer| !observer.unknown_commits.is_empty()) {
            // What became of a commit is asked of sound rows only.
            self.repair_rows();
        }
        self.disk_failed.store(false, Ordering::Relaxed);
        let [database, logs @ ..] = self.disk.attach(&on_incident);
        let vault = lock(&self.sealing).vault();
        let store = EmbeddedStore::open_backends(database, logs, options, vault).map_err(|error| error.to_string())?;
        // The old key is put away once the new one is in force.
        lock(&self.sealing).previous = None;
        let store = Arc::new(store);
        self.compare(&store).await?;
        let shared = Arc::new(SimStore::of(Arc::clone(self), Arc::clone(&store)));
        *lock(&self.store) = Some(Arc::clone(&shared));
        let env = Environment {
            clock: Arc::new(SimClock(Arc::clone(self))),
            entropy: Arc::new(SimEntropy(Arc::clone(self))),
            store: shared,
            nodes: (0..self.script.setup.nodes)
                .map(|index| {
                    let name = format!("node-{index}");
                    Arc::new(SimNode { sim: Arc::clone(self), index, name, known: Default::default() }) as Arc<dyn Node>
                })
                .collect(),
            webhooks: Arc::new(SimWebhooks(Arc::clone(self))) as Arc<dyn WebhookTransport>,
            probe: Arc::new(SimProbe(Arc::clone(self))),
        };
        let tree = Tree::start(env, setup.settings()).await.map_err(|error| error.to_string())?;
        self.check_epoch(&store).await;
        self.open_endpoint(tree.engine());
        if !self.are_faults_on() && begins.elapsed() > BOOT_LIMIT {
            let took = begins.elapsed().as_secs();
            self.observe(|observer| observer.violate("boot-ends", format!("starting took {took} s"), None));
        }
        Ok((tree, store))
    }

    fn trace_boot(&self) {
        let boots = {
            let mut trace = self.trace();
            trace.mark("the process starts");
            trace.marked("the process starts")
        };
        self.event(Lane::Process, "boot", None, boots, || format!("the process starts (boot {boots})"));
        if boots > u64::from(MAX_BOOTS) {
            self.observe(|observer| observer.violate("boot-ends", format!("it started {MAX_BOOTS} times"), None));
        }
    }

    /// Works the agenda off until the process ends.
    async fn drive(self: &Arc<Self>, tree: &Tree, engine: &Engine, store: &Arc<EmbeddedStore>) -> ProcessExit {
        loop {
            if self.has_exited() {
                return self.take_exit();
            }
            let freeze_ms = lock(&self.armed_faults).freeze_ms.take();
            if let Some(freeze_ms) = freeze_ms {
                self.freeze(freeze_ms);
            }
            let due = {
                let mut event_queue = lock(&self.event_queue);
                let first = event_queue.events.first_key_value().map(|((at, _), _)| *at).unwrap_or(u64::MAX);
                let event = if first <= self.now_ms() { event_queue.events.pop_first() } else { None };
                event.map(|(_, event)| event).ok_or(first)
            };
            match due {
                Ok(Event::Finish) => {
                    if self.finish(engine, store).await {
                        return ProcessExit::Over;
                    }
                }
                Ok(event) => {
                    let is_step = matches!(event, Event::Act(..));
                    self.handle_event(event, Some(engine));
                    if is_step && !self.is_damaged() {
                        self.disk.set_quiet(true);
                        // A store that cannot be read now is noticed by whoever needs it.
                        let _ = self.compare_a_list(store).await;
                        self.disk.set_quiet(false);
                    }
                }
                Err(at_ms) => {
                    let wait = Duration::from_millis(at_ms.saturating_sub(self.now_ms()));
                    tokio::select! {
                        biased;
                        () = self.until_exit() => {}
                        () = self.event_added.notified() => {}
                        why = tree.failed() => return ProcessExit::GaveUp(why),
                        () = tokio::time::sleep(wait) => {}
                    }
                }
            }
        }
    }

    /// Lets time pass while the process stands still: the others live on, and afterwards all that it waited for is there
    /// at once.
    fn freeze(self: &Arc<Self>, for_ms: u64) {
        // The clock moves at the first poll; what would then let the tasks run is not waited for.
        let _ = tokio::time::advance(Duration::from_millis(for_ms)).now_or_never();
        self.time.moved();
        let read_failed_ms = self.read_failed_ms.swap(u64::MAX, Ordering::Relaxed);
        self.catch_up();
        if read_failed_ms < u64::MAX {
            self.read_failed_ms.store(self.now_ms(), Ordering::Relaxed);
        }
        self.mark("a process stands still and goes on");
    }

    /// Does what came due while no process was there.
    fn catch_up(self: &Arc<Self>) {
        loop {
            let event = {
                let mut event_queue = lock(&self.event_queue);
                let is_due = event_queue.events.first_key_value().is_some_and(|((at, _), _)| *at <= self.now_ms());
                if is_due { event_queue.events.pop_first() } else { None }
            };
            match event {
                None => return,
                Some((_, Event::Finish)) => self.schedule_in(1_000, Event::Finish),
                Some(((at, _), Event::Block)) => self.block(at),
                Some((_, event)) => self.handle_event(event, None),
            }
        }
    }

    fn handle_event(self: &Arc<Self>, event: Event, engine: Option<&Engine>) {
        match event {
            Event::Block => self.block(self.now_ms()),
            Event::Register(merchant) => clients::register(self, engine, merchant),
            Event::Act(action, tries) => clients::act(self, engine, action, tries),
            Event::Heal => self.heal(),
            Event::Finish => {}
        }
    }

    /// What follows the end of a process.
    fn after(self: &Arc<Self>, exit: &ProcessExit) {
        let downtime_ms = {
            let mut streams = lock(&self.streams);
            let most = if self.are_faults_on() { 20_000 } else { 2_000 };
            500 + streams.process.wait_ms(most)
        };
        match exit {
            ProcessExit::PowerCut => {
                if self.disk.has_unsynced() {
                    self.mark("the power goes with unsynced writes");
                }
                if self.disk.lose_unsynced() {
                    self.mark("a sector is torn");
                }
                self.event(Lane::Process, "dead", None, 0, || "the power is gone".to_owned());
            }
            ProcessExit::Killed => self.event(Lane::Process, "dead", None, 1, || "the process is killed".to_owned()),
            ProcessExit::Restart => {
                self.event(Lane::Process, "dead", None, 2, || "the process is stopped in order".to_owned());
            }
            ProcessExit::GaveUp(why) => {
                self.mark("the engine gives up on its store");
                self.damage_stops_nothing(why);
                self.event(Lane::Process, "dead", None, 3, || format!("the engine gives up: {why}"));
            }
            ProcessExit::NoStart(why) => {
                self.event(Lane::Process, "dead", None, 4, || format!("the engine cannot start: {why}"));
                self.damage_stops_nothing(why);
                if !self.are_faults_on() {
                    self.observe(|observer| observer.violate("boot-ends", why.clone(), None));
                }
            }
            ProcessExit::Over => return,
        }
        if lock(&self.observer).violation().is_some() {
            return;
        }
        self.time.pass(downtime_ms);
        let unanswered = self.clients().take_unanswered();
        self.restore_copy();
        for (action, tries) in unanswered {
            self.mark("a caller is left without an answer");
            self.act_later(1_000, action, tries + 1);
        }
    }

    // ---- the end ---------------------------------------------------------------------------------------------------
}

/// The chain that simulations run on.
pub const CHAIN: ChainId = ChainId::MAINNET;
