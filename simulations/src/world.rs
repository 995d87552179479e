//! The world: the real tree of actors over a simulated chain, disk, clock and merchants, driven by one agenda, killed
//! and booted again as often as need be, and the same every time for one script.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use actors::{
    Environment, Gateway, Tree,
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
use storage::{Batch, CommitMode, Options, RedbStore, Store, Write};
use tokio::{sync::Notify, time::Instant};

use crate::{
    customers::{self, People},
    disk::{DiskFaults, Incident, SimDisk},
    hive::{Hive, SimNode},
    observer::{End, Observer, Violation},
    options::{FEE_ACCOUNT, Fault},
    random::Random,
    receivers::{Receivers, SimWebhooks, name_of},
    script::{Action, Script, Trouble},
    store::{SimStore, is_applied},
    trace::{Lane, Line, Trace},
};

/// When every world begins, seconds since 1970.
pub const EPOCH_SECONDS: u64 = 1_800_000_000;
/// Calls of the world by the engine while virtual time stands still, above which it spins.
const MAX_SPINS: u64 = 3_000_000;
/// How long a boot may take when nothing is wrong.
const BOOT_LIMIT: Duration = Duration::from_secs(60);
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
}

struct Streams {
    store: Random,
    clients: Random,
    points: Random,
    process: Random,
}

/// Where virtual time stands.
#[derive(Default)]
struct Time {
    /// When the process started.
    base_ms: AtomicU64,
    /// The runtime's clock then; none between two processes.
    started: Mutex<Option<Instant>>,
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
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let runtime = runtime.expect("a runtime without sockets needs only memory");
        let death = runtime.block_on(async {
            let death = world.clone().live().await;
            // The power goes first: what a dropped task still wants to write must not arrive.
            world.disk.detach();
            world.time.stop();
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
            receivers: Mutex::new(Receivers::new(&root, setup.merchants)),
            entropy: Mutex::new(root.fork("entropy")),
            streams: Mutex::new(Streams {
                store: root.fork("store"),
                clients: root.fork("clients"),
                points: root.fork("points"),
                process: root.fork("process"),
            }),
            agenda: Mutex::default(),
            traps: Mutex::default(),
            time: Time::default(),
            is_dead: AtomicBool::new(false),
            died: Notify::new(),
            bell: Notify::new(),
            death: Mutex::new(None),
            faults_on: AtomicBool::new(true),
            script,
        };
        world.fill_agenda();
        world.set_disk_faults();
        Arc::new(world)
    }

    fn fill_agenda(&self) {
        let script = &self.script;
        self.schedule(0, Event::Block);
        for merchant in 0..script.setup.merchants {
            self.schedule(1_000, Event::Register(merchant));
        }
        for step in &script.steps {
            self.schedule(step.at_ms, Event::Act(step.action.clone(), 0));
        }
        let heal_at = script.heal_at_ms.unwrap_or(script.last_step_ms() + 45_000);
        self.schedule(heal_at, Event::Heal);
    }

    fn set_disk_faults(&self) {
        self.disk.set_faults(DiskFaults {
            read_error: self.rate(Fault::DiskRead),
            write_error: self.rate(Fault::DiskWrite),
            sync_error: self.rate(Fault::DiskSync),
            power_cut: self.rate(Fault::PowerCut),
        });
    }

    // ---- one process -----------------------------------------------------------------------------------------------

    /// Boots, and lives until something ends it.
    async fn live(self: Arc<Self>) -> Death {
        *lock(&self.time.started) = Some(Instant::now());
        self.is_dead.store(false, Ordering::Relaxed);
        *lock(&self.death) = None;
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
        let gateway = tree.gateway();
        let death = self.drive(&tree, &gateway, &store).await;
        if death == Death::Restart {
            // What waits may still be written; nobody new is let in.
            tree.stop().await;
            store.close().await;
        }
        death
    }

    async fn boot(self: &Arc<Self>) -> Result<(Tree, Arc<RedbStore>), String> {
        let begins = Instant::now();
        self.trace_boot();
        let told = {
            let world = Arc::downgrade(self);
            Arc::new(move |incident| {
                if let Some(world) = world.upgrade() {
                    world.disk_tells(incident);
                }
            })
        };
        let options = Options { cache_bytes: self.script.setup.cache_bytes, mode: CommitMode::Inline };
        let store = RedbStore::open_backend(self.disk.attach(told), options).map_err(|error| error.to_string())?;
        let store = Arc::new(store);
        self.compare(&store).await?;
        let env = Environment {
            clock: Arc::new(SimClock(Arc::clone(self))),
            entropy: Arc::new(SimEntropy(Arc::clone(self))),
            store: Arc::new(SimStore { world: Arc::clone(self), inner: Arc::clone(&store) }),
            nodes: (0..self.script.setup.nodes)
                .map(|index| {
                    let name = format!("node-{index}");
                    Arc::new(SimNode { world: Arc::clone(self), index, name }) as Arc<dyn Node>
                })
                .collect(),
            webhooks: Arc::new(SimWebhooks(Arc::clone(self))) as Arc<dyn WebhookTransport>,
            probe: Arc::new(SimProbe(Arc::clone(self))),
        };
        let tree = Tree::start(env, self.script.setup.settings()).await.map_err(|error| error.to_string())?;
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
            trace.marks()["the process starts"]
        };
        self.event(Lane::Process, "boot", None, boots, || format!("the process starts (boot {boots})"));
        if boots > u64::from(MAX_BOOTS) {
            self.observe(|observer| observer.violate("boot-ends", format!("it started {MAX_BOOTS} times"), None));
        }
    }

    /// Compares the store with what was durable, and learns what became of commits of unknown fate.
    async fn compare(&self, store: &RedbStore) -> Result<(), String> {
        self.disk.set_quiet(true);
        let compared = self.compare_quietly(store).await;
        self.disk.set_quiet(false);
        compared
    }

    async fn compare_quietly(&self, store: &RedbStore) -> Result<(), String> {
        let failed = |error: storage::ReadError| error.to_string();
        let maybe = self.observe(|observer| {
            observer.posting.clear();
            observer.answered.clear();
            std::mem::take(&mut observer.maybe)
        });
        for batch in maybe {
            let applied = is_applied(store, &batch).await.map_err(failed)?;
            self.mark(if applied { "an unknown commit was committed" } else { "an unknown commit was not" });
            if applied {
                self.tell_commit(&batch);
                self.observe(|observer| observer.committed(&batch));
            }
        }
        let (dirty, cursor, merchants) = self.observe(|observer| {
            let merchants: Vec<_> = observer.merchants.values().cloned().collect();
            (std::mem::take(&mut observer.dirty), observer.cursor, merchants)
        });
        let mut lost = None;
        for id in dirty {
            let stored = store.payment(id).await.map_err(failed)?;
            let same = self.observe(|observer| {
                observer.payments.get(&id).is_some_and(|known| stored.as_ref() == Some(&known.payment))
            });
            if !same {
                let what =
                    stored.map_or_else(|| "nothing".to_owned(), |s| format!("{} version {}", s.state, s.version));
                lost = Some((format!("{id} is not as it was durable: the store has {what}"), Some(id)));
                break;
            }
        }
        let stored_cursor = store.cursor().await.map_err(failed)?;
        if stored_cursor != cursor {
            lost.get_or_insert((format!("the cursor is {stored_cursor:?} and was {cursor:?}"), None));
        }
        for merchant in merchants {
            if store.merchant(merchant.id).await.map_err(failed)?.as_ref() != Some(&merchant) {
                lost.get_or_insert((format!("{} is not as it was durable", merchant.id), None));
            }
        }
        self.observe(|observer| match lost {
            Some((text, payment)) => observer.violate("durable-survives-boot", text, payment),
            None => observer.passes("durable-survives-boot"),
        });
        Ok(())
    }

    /// Works the agenda off until the process ends.
    async fn drive(self: &Arc<Self>, tree: &Tree, gateway: &Gateway, store: &Arc<RedbStore>) -> Death {
        loop {
            if self.is_dead() {
                return self.take_death();
            }
            let due = {
                let mut agenda = lock(&self.agenda);
                let first = agenda.events.first_key_value().map(|((at, _), _)| *at).unwrap_or(u64::MAX);
                let event = if first <= self.now_ms() { agenda.events.pop_first() } else { None };
                event.map(|(_, event)| event).ok_or(first)
            };
            match due {
                Ok(Event::Finish) => {
                    if self.finish(gateway, store).await {
                        return Death::Over;
                    }
                }
                Ok(event) => self.happen(event, Some(gateway)),
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

    fn happen(self: &Arc<Self>, event: Event, gateway: Option<&Gateway>) {
        match event {
            Event::Block => self.block(self.now_ms()),
            Event::Register(merchant) => customers::register(self, gateway, merchant),
            Event::Act(action, tries) => customers::act(self, gateway, action, tries),
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
                self.event(Lane::Process, "dead", None, 3, || format!("the engine gives up: {why}"));
            }
            Death::NoStart(why) => {
                self.event(Lane::Process, "dead", None, 4, || format!("the engine does not start: {why}"));
                if !self.are_faults_on() {
                    self.observe(|observer| observer.violate("boot-ends", why.clone(), None));
                }
            }
            Death::Over => return,
        }
        if lock(&self.observer).violation().is_some() {
            return;
        }
        self.time.base_ms.fetch_add(downtime_ms, Ordering::Relaxed);
        let unanswered = self.people().take_unanswered();
        for (action, tries) in unanswered {
            self.mark("a caller is left without an answer");
            self.act_later(1_000, action, tries + 1);
        }
    }

    // ---- the end ---------------------------------------------------------------------------------------------------

    /// Ends everything that is wrong: from now on all must come right.
    fn heal(self: &Arc<Self>) {
        self.faults_on.store(false, Ordering::Relaxed);
        self.hive().heal();
        self.receivers().heal();
        self.set_disk_faults();
        self.disk.disarm();
        self.disk.set_spare(None);
        *lock(&self.traps) = Traps::default();
        self.time.skew_ms.store(0, Ordering::Relaxed);
        self.event(Lane::Process, "heal", None, 0, || "faults end here; everything has to come right now".to_owned());
        self.schedule_in(200_000, Event::Finish);
        if !self.script.setup.heal_without_restart {
            self.die(Death::Killed);
        }
    }

    /// Looks whether everything has come right; says whether it is over.
    async fn finish(self: &Arc<Self>, gateway: &Gateway, store: &RedbStore) -> bool {
        // Sessions that live longer, webhooks whose time is near: give them theirs.
        let (latest_ms, known) = self.observe(|observer| {
            let open = observer.payments.values().map(|known| &known.payment).filter(|p| !p.state.is_terminal());
            let sessions =
                open.map(|p| (p.expires_at + p.grace).max(p.claim.as_ref().map_or(Timestamp::EPOCH, |c| c.expiration)));
            let claims =
                observer.payments.values().filter_map(|known| known.payment.claim.as_ref()).map(|c| c.expiration);
            let elsewhere = observer.claims.values().filter_map(|claimed| match &claimed.purpose {
                storage::Purpose::Facilitated(facilitation) if claimed.fate == storage::Fate::Open => {
                    Some(facilitation.expiration)
                }
                _ => None,
            });
            let latest = sessions.chain(claims).chain(elsewhere).max();
            (latest.map(|time| time.millis().saturating_sub(EPOCH_SECONDS * 1_000)), observer.payments.len())
        });
        let now_ms = self.now_ms();
        let margin = 60_000 + u64::from(self.script.setup.finality_lag) * self.script.setup.block_seconds * 1_000;
        let wanted = latest_ms.map_or(now_ms, |latest| latest + margin + 130_000);
        {
            let mut agenda = lock(&self.agenda);
            if wanted > now_ms && wanted > agenda.last_finish_ms {
                agenda.last_finish_ms = wanted;
                drop(agenda);
                self.schedule(wanted, Event::Finish);
                return false;
            }
        }
        self.disk.set_quiet(true);
        let looked = self.look(gateway, store, known).await;
        self.disk.set_quiet(false);
        if let Err(why) = looked {
            self.observe(|observer| {
                observer.violate("durable-survives-boot", format!("the store cannot be read: {why}"), None);
            });
        }
        true
    }

    async fn look(self: &Arc<Self>, gateway: &Gateway, store: &RedbStore, known: usize) -> Result<(), String> {
        let failed = |error: storage::ReadError| error.to_string();
        let ids: Vec<PaymentId> = self.observe(|observer| observer.payments.keys().copied().collect());
        let mut stored = BTreeMap::new();
        for id in ids {
            match store.payment(id).await.map_err(failed)? {
                Some(payment) => drop(stored.insert(id, payment)),
                None => self
                    .observe(|observer| observer.violate("durable-survives-boot", format!("{id} is gone"), Some(id))),
            }
        }
        let accounts: Vec<_> =
            self.observe(|observer| observer.accounts.iter().cloned().chain(observer.fee_account.clone()).collect());
        let mut stored_unmatched = Vec::new();
        for account in accounts {
            stored_unmatched.extend(store.unmatched(account, usize::MAX).await.map_err(failed)?);
        }
        let in_flight = store.in_flight().await.map_err(failed)?;
        let outbox = store.due_deliveries(Timestamp::MAX, usize::MAX).await.map_err(failed)?;
        let scanned_num = gateway.health().await.map_or(0, |health| health.ledger.scanned_num);
        let now = gateway.now();
        let differing = self.observe(|observer| {
            let differs = |(id, payment): (&PaymentId, &engine::payment::Payment)| {
                observer.payments.get(id).is_none_or(|known| known.payment != *payment).then_some(*id)
            };
            stored.iter().find_map(differs)
        });
        if let Some(id) = differing.or_else(|| (stored.len() < known).then_some(PaymentId::from_bits(0))) {
            let text = format!("{id} is not stored as it was made durable");
            self.observe(|observer| observer.violate("durable-survives-boot", text, Some(id)));
        }
        self.observe(|observer| {
            observer.ends(|observer| End { observer, now, scanned_num, in_flight, stored, stored_unmatched, outbox });
            for name in ["boot-ends", "time-moves", "no-panic", "webhook-is-readable", "claimed-once"] {
                observer.passes(name);
            }
        });
        self.check_expectations();
        Ok(())
    }

    fn check_expectations(&self) {
        for expect in &self.script.expect {
            let id = self.people().sessions.get(&expect.session).map(|known| known.id);
            self.observe(|observer| {
                let Some((id, payment)) =
                    id.and_then(|id| observer.payments.get(&id).map(|known| (id, known.payment.clone())))
                else {
                    observer.violate("expected", format!("session {} was never opened", expect.session), None);
                    return;
                };
                let state = payment.state.word();
                let mut wrong = Vec::new();
                if !expect.states.is_empty() && !expect.states.iter().any(|word| word == state) {
                    wrong.push(format!("it is {state}, expected {}", expect.states.join(" or ")));
                }
                if let Some(units) = expect.credited_units.filter(|units| *units != payment.paid_units()) {
                    wrong.push(format!("{} units are credited, expected {units}", payment.paid_units()));
                }
                let exceptions: Vec<_> =
                    payment.exceptions().into_iter().map(engine::payment::Exception::word).collect();
                if let Some(wanted) = expect.exceptions.as_ref().filter(|wanted| **wanted != exceptions) {
                    wrong.push(format!("its exceptions are {exceptions:?}, expected {wanted:?}"));
                }
                let heard = observer.heard.get(&id).map_or(0, std::collections::BTreeSet::len);
                if let Some(wanted) = expect.webhooks.filter(|wanted| *wanted != heard) {
                    wrong.push(format!("the merchant heard {heard} events, expected {wanted}"));
                }
                if let Some(first) = wrong.first() {
                    observer.violate("expected", first.clone(), Some(id));
                } else {
                    observer.passes("expected");
                }
            });
        }
    }

    fn outcome(&self) -> Outcome {
        let observer = lock(&self.observer);
        let mut trace = self.trace();
        let (digest, len) = self.disk.digest();
        let (operations, syncs) = self.disk.counts();
        for word in [digest, len, operations, syncs] {
            trace.mix(word);
        }
        let mut outcome = Outcome {
            violation: observer.violation().cloned(),
            hash: trace.hash(),
            faults: trace.faults().clone(),
            marks: trace.marks().clone(),
            passes: observer.passes.clone(),
            virtual_ms: self.time.base_ms.load(Ordering::Relaxed),
            boots: u32::try_from(trace.marks().get("the process starts").copied().unwrap_or(0)).unwrap_or(0),
            events: trace.events(),
            syncs,
            lines: trace.take_lines(),
            ..Outcome::default()
        };
        for known in observer.payments.values() {
            *outcome.states.entry(known.payment.state.word()).or_default() += 1;
            outcome.lifecycles += u64::from(known.payment.state.is_terminal());
        }
        outcome
    }

    // ---- blocks and trouble ----------------------------------------------------------------------------------------

    fn block(self: &Arc<Self>, at_ms: u64) {
        let setup = &self.script.setup;
        let now = Timestamp::from_millis(EPOCH_SECONDS * 1_000 + at_ms);
        self.schedule(at_ms + setup.block_seconds * 1_000, Event::Block);
        if self.are_faults_on() {
            self.roll();
        }
        let disk_is_free = {
            let mut traps = lock(&self.traps);
            let over = traps.disk_full_until.is_some_and(|until| at_ms >= until);
            if over {
                traps.disk_full_until = None;
            }
            over
        };
        if disk_is_free {
            self.disk.set_spare(None);
        }
        let produced = self.hive().produce(at_ms, now);
        if let Some(depth) = produced.forked {
            self.fault(Lane::Ledger, Fault::Fork.word(), u64::from(depth), || {
                format!("a fork replaces {depth} blocks")
            });
        }
        if !produced.included.is_empty() {
            let count = produced.included.len() as u64;
            self.event(Lane::Ledger, "block", None, count, || {
                format!("block {} holds {count} transactions", produced.number)
            });
        }
        self.observe(|observer| {
            observer.ever_included.extend(produced.included);
            for block in produced.finalized {
                observer.finalized(block.number(), block.time, block.transfers);
            }
        });
    }

    fn roll(self: &Arc<Self>) {
        let now_ms = self.now_ms();
        let mut troubles = self.hive().roll(now_ms, |fault| self.rate(fault));
        if let Some((merchant, manner, for_ms)) = self.receivers().roll(self.rate(Fault::HookOutage)) {
            troubles.push(Trouble::Outage { merchant, manner, for_ms });
        }
        {
            let random = &mut lock(&self.streams).process;
            if random.chance(self.rate(Fault::DiskFull)) {
                troubles.push(Trouble::DiskFull { for_ms: random.between(1_000, 60_000) });
            }
            if random.chance(self.rate(Fault::ClockStep)) {
                let by = i64::try_from(random.below(40_001)).unwrap_or(0) - 20_000;
                troubles.push(Trouble::ClockStep { by_ms: by });
            }
            if random.chance(self.rate(Fault::ProcessKill)) {
                troubles.push(if random.chance(400_000) {
                    Trouble::PowerCutIn(random.between(1, 40))
                } else {
                    Trouble::Kill
                });
            }
            if random.chance(self.rate(Fault::GracefulRestart)) {
                troubles.push(Trouble::Restart);
            }
        }
        for trouble in troubles {
            self.suffer(&trouble);
        }
    }

    /// Lets something go wrong now.
    pub(crate) fn suffer(self: &Arc<Self>, trouble: &Trouble) {
        let now_ms = self.now_ms();
        let (lane, kind) = named(trouble);
        let happened = match trouble {
            Trouble::PowerCut => {
                self.die(Death::PowerCut);
                true
            }
            Trouble::Kill => {
                self.die(Death::Killed);
                true
            }
            Trouble::Restart => {
                self.die(Death::Restart);
                true
            }
            Trouble::PowerCutIn(n) => {
                self.disk.cut_in(*n);
                true
            }
            Trouble::DiskErrorIn(n) => {
                self.disk.fail_in(*n);
                true
            }
            Trouble::DiskFull { for_ms } => {
                self.disk.set_spare(Some(0));
                lock(&self.traps).disk_full_until = Some(now_ms + for_ms);
                true
            }
            Trouble::KillAt(point) => {
                lock(&self.traps).kill_at.push_back(point.clone());
                true
            }
            Trouble::PanicAt(point) => {
                lock(&self.traps).panic_at.push_back(point.clone());
                true
            }
            Trouble::Outage { merchant, manner, for_ms } => {
                self.receivers().suffer(*merchant, *manner, now_ms + for_ms)
            }
            Trouble::ClockStep { by_ms } => {
                let skew = self.time.skew_ms.load(Ordering::Relaxed) + by_ms;
                self.time.skew_ms.store(skew.clamp(-25_000, 25_000), Ordering::Relaxed);
                true
            }
            of_the_ledger => {
                let payee = {
                    let people = self.people();
                    people.sessions.last_key_value().map(|(_, session)| session.id)
                };
                let payee = payee.and_then(|id| {
                    self.observe(|observer| {
                        observer.payments.get(&id).map(|known| (known.payment.pay_to.clone(), memo_of(id)))
                    })
                });
                self.hive().suffer(of_the_ledger, now_ms, payee)
            }
        };
        if happened {
            self.fault(lane, kind, 0, || format!("{kind}: {trouble:?}"));
        }
    }

    fn disk_tells(&self, incident: Incident) {
        match incident {
            Incident::Error(what) => self.fault(Lane::Disk, "disk.error", 0, || format!("the disk fails: {what}")),
            Incident::Full => self.fault(Lane::Disk, "disk.no_room", 0, || "the disk is full".to_owned()),
            Incident::PowerCut => {
                self.fault(Lane::Disk, Fault::PowerCut.word(), 0, || {
                    "the power goes inside a disk operation".to_owned()
                });
                self.mark("the power goes inside a disk operation");
                self.die(Death::PowerCut);
            }
        }
    }

    /// Ends the process here and now: nothing it still does reaches anybody.
    fn die(&self, death: Death) {
        lock(&self.death).get_or_insert(death.clone());
        // A stop in order lets the actors finish first.
        if death != Death::Restart {
            self.disk.detach();
        }
        self.is_dead.fetch_or(death != Death::Restart, Ordering::Relaxed);
        self.died.notify_one();
    }

    /// Waits until the process dies.
    async fn dead(&self) {
        while !self.is_dead() {
            self.died.notified().await;
        }
    }

    fn take_death(&self) -> Death {
        lock(&self.death).take().unwrap_or(Death::Killed)
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.is_dead.load(Ordering::Relaxed) || lock(&self.death).is_some()
    }

    // ---- what everybody here uses ----------------------------------------------------------------------------------

    /// Returns at once in a living process, and never in a dead one. Counts, to notice who spins.
    pub(crate) async fn alive(&self) {
        self.count_spin();
        if self.is_dead.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
    }

    fn count_spin(&self) {
        let now_ms = self.now_ms();
        if self.time.last_ms.swap(now_ms, Ordering::Relaxed) != now_ms {
            self.time.spins.store(0, Ordering::Relaxed);
        } else if self.time.spins.fetch_add(1, Ordering::Relaxed) == MAX_SPINS {
            self.observe(|observer| {
                let text = format!("{MAX_SPINS} calls and virtual time stands still");
                observer.violate("time-moves", text, None);
            });
        }
    }

    pub(crate) async fn sleep(&self, ms: u64) {
        if ms > 0 {
            tokio::time::sleep(Duration::from_millis(ms)).await;
        }
    }

    /// Returns virtual milliseconds since the world began.
    pub(crate) fn now_ms(&self) -> u64 {
        self.time.now_ms()
    }

    /// Returns the wall clock, right or wrong.
    pub(crate) fn wall(&self) -> Timestamp {
        let true_ms = EPOCH_SECONDS * 1_000 + self.now_ms();
        Timestamp::from_millis(true_ms.saturating_add_signed(self.time.skew_ms.load(Ordering::Relaxed)))
    }

    pub(crate) fn rate(&self, fault: Fault) -> u32 {
        if self.are_faults_on() { self.script.faults.ppm(fault) } else { 0 }
    }

    /// Returns the longest of a kind of wait: slowness, too, ends with the faults.
    pub(crate) fn calmed(&self, most_ms: u64) -> u64 {
        if self.are_faults_on() { most_ms } else { most_ms.min(50) }
    }

    fn are_faults_on(&self) -> bool {
        self.faults_on.load(Ordering::Relaxed)
    }

    pub(crate) fn hive(&self) -> MutexGuard<'_, Hive> {
        lock(&self.hive)
    }

    pub(crate) fn people(&self) -> MutexGuard<'_, People> {
        lock(&self.people)
    }

    pub(crate) fn receivers(&self) -> MutexGuard<'_, Receivers> {
        lock(&self.receivers)
    }

    fn trace(&self) -> MutexGuard<'_, Trace> {
        lock(&self.trace)
    }

    /// Shows the observer something; ends the run if an invariant does not hold.
    pub(crate) fn observe<T>(&self, look: impl FnOnce(&mut Observer) -> T) -> T {
        let (seen, is_violated, marks) = {
            let mut observer = lock(&self.observer);
            observer.now_ms = self.now_ms();
            if let Some(panic) = crate::panics::take() {
                observer.violate("no-panic", panic, None);
            }
            let seen = look(&mut observer);
            (seen, observer.violation().is_some(), observer.take_marks())
        };
        if !marks.is_empty() {
            let mut trace = self.trace();
            marks.into_iter().for_each(|mark| trace.mark(mark));
        }
        if is_violated {
            *lock(&self.death) = Some(Death::Over);
            self.disk.detach();
            self.is_dead.store(true, Ordering::Relaxed);
            self.died.notify_one();
        }
        seen
    }

    pub(crate) fn event(
        &self,
        lane: Lane,
        kind: &'static str,
        session: Option<u32>,
        detail: u64,
        text: impl FnOnce() -> String,
    ) {
        self.trace().event(self.now_ms(), lane, kind, session, detail, text);
    }

    pub(crate) fn fault(&self, lane: Lane, kind: &'static str, detail: u64, text: impl FnOnce() -> String) {
        self.trace().fault(self.now_ms(), lane, kind, detail, text);
    }

    pub(crate) fn mark(&self, name: &'static str) {
        self.trace().mark(name);
    }

    fn schedule(&self, at_ms: u64, event: Event) {
        let mut agenda = lock(&self.agenda);
        agenda.next += 1;
        let number = agenda.next;
        agenda.events.insert((at_ms, number), event);
    }

    fn schedule_in(&self, ms: u64, event: Event) {
        self.schedule(self.now_ms() + ms, event);
        // Whoever waits for the next event may wait too long for this one.
        self.bell.notify_one();
    }

    pub(crate) fn act_later(&self, ms: u64, action: Action, tries: u32) {
        self.schedule_in(ms, Event::Act(action, tries));
    }

    pub(crate) fn register_later(&self, ms: u64, merchant: usize) {
        self.schedule_in(ms, Event::Register(merchant));
    }

    pub(crate) fn client_wait_ms(&self) -> u64 {
        lock(&self.streams).clients.wait_ms(400)
    }

    pub(crate) fn loses_reply(&self) -> bool {
        let rate = self.rate(Fault::ReplyLost);
        let lost = lock(&self.streams).clients.chance(rate);
        if lost {
            self.fault(Lane::Process, Fault::ReplyLost.word(), 0, || "an answer to a caller is lost".to_owned());
        }
        lost
    }

    pub(crate) fn verifies_first(&self) -> bool {
        lock(&self.streams).clients.chance(300_000)
    }

    pub(crate) fn has_waiting_webhooks(&self) -> bool {
        lock(&self.observer).deliveries.values().any(|carried| carried.due_at.is_some() && carried.attempts > 0)
    }

    /// Draws how long a commit waits before and after it is written, and whether it is turned away.
    pub(crate) fn commit_fate(&self) -> (u64, u64, bool) {
        let (busy, most) = (self.rate(Fault::StoreBusy), self.calmed(self.script.setup.commit_ms));
        let random = &mut lock(&self.streams).store;
        (random.wait_ms(most), random.wait_ms(most), random.chance(busy))
    }

    /// Returns a session's number in the script.
    pub(crate) fn session(&self, id: PaymentId) -> Option<u32> {
        lock(&self.observer).payments.get(&id).and_then(|known| known.session)
    }

    pub(crate) fn session_of_tx(&self, tx_id: TxId) -> Option<u32> {
        let observer = lock(&self.observer);
        observer.target(tx_id).and_then(|id| observer.payments.get(&id)).and_then(|known| known.session)
    }

    /// Notes what a durable batch changes, for whoever reads the trace.
    pub(crate) fn tell_commit(&self, batch: &Batch) {
        for write in &batch.writes {
            match write {
                Write::Payment { payment, .. } => {
                    let session = self.session(payment.id);
                    let detail = (payment.version << 8) | payment.state as u64;
                    self.event(Lane::Session, "stored", session, detail, || {
                        let state = payment.state;
                        let money = if payment.transfers.is_empty() {
                            String::new()
                        } else {
                            format!(
                                ", {} of {} units final, {} seen",
                                payment.paid_units(),
                                payment.amount.units,
                                payment.seen_units()
                            )
                        };
                        let claim = payment.claim.as_ref().map_or("", |_| ", claim open");
                        format!("{} is {state} (version {}{money}{claim})", name_of(session), payment.version)
                    });
                    if payment.state == State::Completed && payment.previous_state == Some(State::Processing) {
                        self.mark("a lost payment is found");
                    }
                }
                Write::Cursor { cursor, .. } => {
                    self.event(Lane::Scanner, "cursor", None, u64::from(cursor.block_id.number()), || {
                        format!("the cursor is at block {}", cursor.block_id.number())
                    });
                }
                Write::Attempt { attempt, .. } => {
                    self.event(Lane::Webhook, "attempt", None, u64::from(attempt.number), || {
                        let next = attempt.next_attempt_at.map_or("the last".to_owned(), |at| format!("next at {at}"));
                        format!("attempt {} is recorded as {}, {next}", attempt.number, attempt.outcome.word())
                    });
                }
                Write::Unmatched(unmatched) => {
                    self.event(Lane::Scanner, "unmatched", None, unmatched.transfer.money.units, || {
                        format!(
                            "{} over {} matches no session: {}",
                            unmatched.transfer.tx_id,
                            unmatched.transfer.money,
                            unmatched.reason.word()
                        )
                    });
                }
                _ => {}
            }
        }
    }
}

fn named(trouble: &Trouble) -> (Lane, &'static str) {
    match trouble {
        Trouble::PowerCut | Trouble::PowerCutIn(_) => (Lane::Disk, Fault::PowerCut.word()),
        Trouble::DiskErrorIn(_) => (Lane::Disk, "disk.error_at"),
        Trouble::DiskFull { .. } => (Lane::Disk, Fault::DiskFull.word()),
        Trouble::Kill => (Lane::Process, Fault::ProcessKill.word()),
        Trouble::KillAt(_) => (Lane::Process, Fault::KillAtPoint.word()),
        Trouble::Restart => (Lane::Process, Fault::GracefulRestart.word()),
        Trouble::PanicAt(_) => (Lane::Process, Fault::ActorPanic.word()),
        Trouble::NodeDown { .. } => (Lane::Ledger, Fault::NodeDown.word()),
        Trouble::NodeLag { .. } => (Lane::Ledger, Fault::NodeLag.word()),
        Trouble::NodeLie { .. } => (Lane::Ledger, Fault::NodeLie.word()),
        Trouble::Fork { .. } => (Lane::Ledger, "ledger.fork_wanted"),
        Trouble::HoldFinality { .. } => (Lane::Ledger, Fault::FinalityHeld.word()),
        Trouble::HoldTransactions { .. } => (Lane::Ledger, Fault::TransactionsHeld.word()),
        Trouble::HoldBlocks { .. } => (Lane::Ledger, Fault::MissedBlock.word()),
        Trouble::ForgetMempool => (Lane::Ledger, Fault::MempoolLost.word()),
        Trouble::Outage { .. } => (Lane::Webhook, Fault::HookOutage.word()),
        Trouble::ClockStep { .. } => (Lane::Process, Fault::ClockStep.word()),
    }
}

impl Time {
    /// Stands still until the next process starts.
    fn stop(&self) {
        self.base_ms.store(self.now_ms(), Ordering::Relaxed);
        *lock(&self.started) = None;
    }

    fn now_ms(&self) -> u64 {
        let started = *lock(&self.started);
        let elapsed = started.map_or(0, |started| u64::try_from(started.elapsed().as_millis()).unwrap_or(0));
        self.base_ms.load(Ordering::Relaxed) + elapsed
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

struct SimClock(Arc<World>);

impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        self.0.count_spin();
        self.0.wall()
    }
}

struct SimEntropy(Arc<World>);

impl Entropy for SimEntropy {
    fn fill(&self, out: &mut [u8]) {
        lock(&self.0.entropy).fill(out);
    }
}

/// What an actor panics with when the simulation makes it.
struct Planned;

struct SimProbe(Arc<World>);

impl Probe for SimProbe {
    fn reach(&self, point: &'static str) {
        let world = &self.0;
        world.count_spin();
        if world.is_dead.load(Ordering::Relaxed) {
            return;
        }
        world.mark(point);
        let (kills, panics) = {
            let mut traps = lock(&world.traps);
            let next = |traps: &mut VecDeque<String>| {
                let at = traps.iter().position(|wanted| wanted == point);
                at.is_some_and(|at| traps.remove(at).is_some())
            };
            let (kill, panic) = (next(&mut traps.kill_at), next(&mut traps.panic_at));
            let random = &mut lock(&world.streams).points;
            (
                kill || random.chance(world.rate(Fault::KillAtPoint)),
                panic || random.chance(world.rate(Fault::ActorPanic)),
            )
        };
        if kills {
            world.fault(Lane::Process, Fault::KillAtPoint.word(), 0, || format!("killed at {point:?}"));
            world.die(Death::Killed);
        } else if panics && !point.starts_with("gateway") {
            // A panic in the handle is a panic of its caller; the facade catches that, callers here do not.
            world.fault(Lane::Process, Fault::ActorPanic.word(), 0, || format!("panics at {point:?}"));
            std::panic::resume_unwind(Box::new(Planned));
        }
    }
}

/// The chain that worlds run on.
pub const CHAIN: ChainId = ChainId::MAINNET;
