//! The world: the real tree of actors over a simulated chain, disk, clock and merchants, driven by one agenda, killed
//! and booted again as often as need be, and the same every time for one script.

mod clients;
mod commit_trace;
mod copies;
mod damage;
mod injection_text;
mod injections;
mod judge;
mod model;
mod reach;
mod seams;
mod troubles;

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
    coverage::Places,
    customers::{self, People},
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

use self::seams::{SimClock, SimEntropy, SimProbe};
pub(crate) use self::{clients::Standing, model::Plain, seams::lock};

/// When every world begins, seconds since 1970: an hour before the end of a day (UTC), so that most worlds see one end.
pub const EPOCH_SECONDS: u64 = 1_800_054_000;
/// Calls of the world by the engine while virtual time stands still, above which it spins.
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
                let found = crate::oracles::INVARIANTS.iter().find(|one| one.name == violation.invariant);
                if found.is_some_and(|one| one.code.starts_with('L')) { 11 } else { 10 }
            }
        }
    }
}

/// A world. See the [module](self).
pub struct World {
    pub(crate) script: Script,
    disk: SimDisk,
    hive: Mutex<Hive>,
    observer: Mutex<Observer>,
    trace: Mutex<Trace>,
    people: Mutex<People>,
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
    streams: Mutex<Streams>,
    agenda: Mutex<Agenda>,
    traps: Mutex<Traps>,
    time: Time,
    is_dead: AtomicBool,
    died: Notify,
    bell: Notify,
    death: Mutex<Option<Death>>,
    faults_on: AtomicBool,
    damaged: Mutex<Vec<damage::DamagedRow>>,
    damaged_log: Mutex<Option<damage::DamagedEntry>>,
    sealing: Mutex<Sealing>,
    copies: Mutex<copies::Copies>,
    /// Whether the disk failed since the process started.
    disk_failed: AtomicBool,
    /// When a read of the store failed first since the process started, virtual milliseconds; `u64::MAX` without one.
    read_failed_ms: AtomicU64,
    /// Sessions that one honest party touches, where nothing excuses a refusal.
    plain: BTreeMap<u32, Plain>,
}

struct Streams {
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
    copies: Random,
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
struct Agenda {
    events: BTreeMap<(u64, u64), Event>,
    next: u64,
    last_finish_ms: u64,
}

#[derive(Default)]
struct Traps {
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
enum Death {
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
    let world = World::new(script.clone(), keeps_lines);
    loop {
        let sleeper = Arc::clone(&world);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .on_thread_unpark(move || sleeper.time.moved())
            .build();
        let runtime = runtime.expect("a runtime without sockets needs only memory");
        let death = runtime.block_on(async {
            let death = world.clone().live().await;
            // The power goes first: what a dropped task still wants to write must not arrive.
            world.disk.detach();
            world.time.stop();
            *lock(&world.store) = None;
            *lock(&world.endpoint) = None;
            death
        });
        drop(runtime);
        world.after(&death);
        if death == Death::Over {
            return world.outcome();
        }
    }
}

impl World {
    fn new(script: Script, keeps_lines: bool) -> Arc<Self> {
        let root = Random::new(script.seed);
        let setup = &script.setup;
        let fee_account = setup.split_fee.then(|| AccountName::parse(FEE_ACCOUNT).expect("a name of ours"));
        let hive = Hive::new(setup, &root.fork("ledger"), &customers::accounts(setup.merchants));
        let world = Self {
            disk: SimDisk::new(root.fork("disk")),
            hive: Mutex::new(hive),
            observer: Mutex::new(Observer::new(fee_account)),
            trace: Mutex::new(Trace::new(keeps_lines)),
            people: Mutex::default(),
            setup: Mutex::new(script.setup.clone()),
            receivers: Mutex::new(Receivers::new(&root, setup)),
            store: Mutex::default(),
            endpoint: Mutex::default(),
            booted_ms: AtomicU64::new(0),
            entropy: Mutex::new(root.fork("entropy")),
            streams: Mutex::new(Streams {
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
                copies: root.fork("copies"),
            }),
            agenda: Mutex::default(),
            traps: Mutex::default(),
            time: Time::default(),
            is_dead: AtomicBool::new(false),
            died: Notify::new(),
            bell: Notify::new(),
            death: Mutex::new(None),
            faults_on: AtomicBool::new(true),
            damaged: Mutex::default(),
            damaged_log: Mutex::default(),
            sealing: Mutex::new(Sealing { current: u8::from(script.setup.seal_secrets), previous: None }),
            copies: Mutex::default(),
            disk_failed: AtomicBool::new(false),
            read_failed_ms: AtomicU64::new(u64::MAX),
            plain: model::plain_payments(&script),
            script,
        };
        {
            let mut observer = lock(&world.observer);
            observer.prompt_ms = World::prompt_ms(&world.script);
            observer.nodes = world.script.setup.nodes;
            observer.has_one_chain = model::has_one_chain(&world.script);
            observer.block_interval = Duration::from_secs(world.script.setup.block_seconds);
        }
        world.fill_agenda();
        world.set_disk_faults();
        Arc::new(world)
    }

    // ---- one process -----------------------------------------------------------------------------------------------

    /// Boots, and lives until something ends it.
    async fn live(self: Arc<Self>) -> Death {
        self.time.start();
        self.is_dead.store(false, Ordering::Relaxed);
        *lock(&self.death) = None;
        self.read_failed_ms.store(u64::MAX, Ordering::Relaxed);
        self.catch_up();
        let booted = tokio::select! {
            biased;
            () = self.dead() => return self.take_death(),
            booted = tokio::time::timeout(BOOT_LIMIT * 10, self.boot()) => booted,
        };
        let (tree, store) = match booted {
            Ok(Ok(booted)) => booted,
            Ok(Err(why)) => return if self.is_dead() { self.take_death() } else { Death::NoStart(why) },
            Err(_) => return Death::NoStart("it took ten minutes".to_owned()),
        };
        let engine = tree.engine();
        let death = self.drive(&tree, &engine, &store).await;
        if death == Death::Restart {
            // What waits may still be written; nobody new is let in.
            let stopped = async {
                tree.stop().await;
                store.close().await;
            };
            tokio::select! {
                biased;
                // The power may go meanwhile, and a dead world answers nobody.
                () = self.dead() => return self.take_death(),
                stopped = tokio::time::timeout(STOP_LIMIT, stopped) => if stopped.is_err() {
                    let text = format!("stopping took {} s", STOP_LIMIT.as_secs());
                    self.observe(|observer| observer.violate("stop-ends", text, None));
                    return self.take_death();
                },
            }
        }
        death
    }

    async fn boot(self: &Arc<Self>) -> Result<(Tree, Arc<EmbeddedStore>), String> {
        let begins = Instant::now();
        self.trace_boot();
        let told = {
            let world = Arc::downgrade(self);
            let told = move |incident| {
                if let Some(world) = world.upgrade() {
                    world.disk_tells(incident);
                }
            };
            Arc::new(told) as Arc<dyn Fn(Incident) + Send + Sync>
        };
        let setup = lock(&self.setup).clone();
        let Setup { cache_bytes, log_bytes, .. } = setup;
        let options = Options { cache_bytes, log_bytes, mode: CommitMode::Inline, may_create: true };
        if self.observe(|observer| !observer.maybe.is_empty()) {
            // What became of a commit is asked of sound rows only.
            self.mend();
        }
        self.disk_failed.store(false, Ordering::Relaxed);
        let [database, logs @ ..] = self.disk.attach(&told);
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
                    Arc::new(SimNode { world: Arc::clone(self), index, name, known: Default::default() })
                        as Arc<dyn Node>
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
    async fn drive(self: &Arc<Self>, tree: &Tree, engine: &Engine, store: &Arc<EmbeddedStore>) -> Death {
        loop {
            if self.is_dead() {
                return self.take_death();
            }
            let freeze_ms = lock(&self.traps).freeze_ms.take();
            if let Some(freeze_ms) = freeze_ms {
                self.freeze(freeze_ms);
            }
            let due = {
                let mut agenda = lock(&self.agenda);
                let first = agenda.events.first_key_value().map(|((at, _), _)| *at).unwrap_or(u64::MAX);
                let event = if first <= self.now_ms() { agenda.events.pop_first() } else { None };
                event.map(|(_, event)| event).ok_or(first)
            };
            match due {
                Ok(Event::Finish) => {
                    if self.finish(engine, store).await {
                        return Death::Over;
                    }
                }
                Ok(event) => {
                    let is_step = matches!(event, Event::Act(..));
                    self.happen(event, Some(engine));
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
                        () = self.dead() => {}
                        () = self.bell.notified() => {}
                        why = tree.failed() => return Death::GaveUp(why),
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
                let mut agenda = lock(&self.agenda);
                let is_due = agenda.events.first_key_value().is_some_and(|((at, _), _)| *at <= self.now_ms());
                if is_due { agenda.events.pop_first() } else { None }
            };
            match event {
                None => return,
                Some((_, Event::Finish)) => self.schedule_in(1_000, Event::Finish),
                Some(((at, _), Event::Block)) => self.block(at),
                Some((_, event)) => self.happen(event, None),
            }
        }
    }

    fn happen(self: &Arc<Self>, event: Event, engine: Option<&Engine>) {
        match event {
            Event::Block => self.block(self.now_ms()),
            Event::Register(merchant) => customers::register(self, engine, merchant),
            Event::Act(action, tries) => customers::act(self, engine, action, tries),
            Event::Heal => self.heal(),
            Event::Finish => {}
        }
    }

    /// What follows the end of a process.
    fn after(self: &Arc<Self>, death: &Death) {
        let downtime_ms = {
            let mut streams = lock(&self.streams);
            let most = if self.are_faults_on() { 20_000 } else { 2_000 };
            500 + streams.process.wait_ms(most)
        };
        match death {
            Death::PowerCut => {
                if self.disk.has_unsynced() {
                    self.mark("the power goes with unsynced writes");
                }
                if self.disk.lose_unsynced() {
                    self.mark("a sector is torn");
                }
                self.event(Lane::Process, "dead", None, 0, || "the power is gone".to_owned());
            }
            Death::Killed => self.event(Lane::Process, "dead", None, 1, || "the process is killed".to_owned()),
            Death::Restart => {
                self.event(Lane::Process, "dead", None, 2, || "the process is stopped in order".to_owned());
            }
            Death::GaveUp(why) => {
                self.mark("the engine gives up on its store");
                self.damage_stops_nothing(why);
                self.event(Lane::Process, "dead", None, 3, || format!("the engine gives up: {why}"));
            }
            Death::NoStart(why) => {
                self.event(Lane::Process, "dead", None, 4, || format!("the engine cannot start: {why}"));
                self.damage_stops_nothing(why);
                if !self.are_faults_on() {
                    self.observe(|observer| observer.violate("boot-ends", why.clone(), None));
                }
            }
            Death::Over => return,
        }
        if lock(&self.observer).violation().is_some() {
            return;
        }
        self.time.pass(downtime_ms);
        let unanswered = self.people().take_unanswered();
        self.restore_copy();
        for (action, tries) in unanswered {
            self.mark("a caller is left without an answer");
            self.act_later(1_000, action, tries + 1);
        }
    }

    // ---- the end ---------------------------------------------------------------------------------------------------
}

/// The chain that worlds run on.
pub const CHAIN: ChainId = ChainId::MAINNET;
