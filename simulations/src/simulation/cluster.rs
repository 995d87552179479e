//! Several engines over one shared store, in one runtime on one paused clock.
//!
//! The shared store models the database server: it is outside of the engines and survives their exits. What an engine
//! does becomes visible through its environment alone, and its environment is reached through the gate of its process
//! ([`Gate`](process::Gate)). A killed process's gate is closed for good: its actors are killed, and whatever else it runs
//! waits for ever at its next call. A paused process's gate opens again when the process continues; calls to it are not
//! polled meanwhile. So one runtime is enough: dropping a runtime for each exit, as a single engine does, would take the
//! other engines' tasks with it, and a runtime for each engine would have a clock of its own that cannot be kept in step
//! with the others without waking all of them every millisecond.
//!
//! A task of a paused engine runs up to its next call of the environment, as if the process had been paused there.

use actors::environment::{Node, WebhookTransport};

use super::{
    environment::{SimClock, SimEntropy, SimProbe},
    *,
};
use crate::{
    client_state::Repeated,
    hive::nodes::SimNode,
    receivers::transport::SimWebhooks,
    shared_store::{SharedStore, StoreClient},
};

/// Maximum duration of a start without faults.
const BOOT_LIMIT: Duration = Duration::from_secs(60);
/// Maximum duration of a graceful shutdown, with any faults.
const STOP_LIMIT: Duration = Duration::from_secs(600);
/// Maximum starts in one run; more are a crash loop.
const MAX_BOOTS: u64 = 4_000;
/// How long a client waits for a paused engine before it repeats its request at another, milliseconds.
const CLIENT_TIMEOUT_MS: u64 = 10_000;

/// Runs a script with several engines. Must not be called inside a runtime.
pub(super) fn run(sim: &Arc<Simulation>) -> Outcome {
    let sleeper = Arc::clone(sim);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .on_thread_unpark(move || sleeper.time.moved())
        .build();
    let runtime = runtime.expect("a runtime without sockets needs only memory");
    runtime.block_on(async {
        sim.time.start();
        if let Err(why) = sim.live_together().await {
            sim.observe(|observer| observer.violate("boot-ends", format!("the shared store: {why}"), None));
        }
        sim.disk.detach();
        sim.time.stop();
        sim.processes.iter().for_each(|process| process.ended());
    });
    drop(runtime);
    sim.outcome()
}

impl Simulation {
    /// Returns whether several engines share a store.
    pub(crate) fn has_shared_store(&self) -> bool {
        self.processes.len() > 1
    }

    /// Opens the shared store, starts every engine, and handles events until the run is over.
    async fn live_together(self: &Arc<Self>) -> Result<(), String> {
        let Setup { cache_bytes, log_bytes, .. } = self.script.setup;
        let options = Options { cache_bytes, log_bytes, mode: CommitMode::Inline, may_create: true };
        let on_incident: Arc<dyn Fn(Incident) + Send + Sync> = Arc::new(|_| {});
        let [database, logs @ ..] = self.disk.attach(&on_incident);
        let vault = lock(&self.sealing).vault();
        let rows = EmbeddedStore::open_backends(database, logs, options, vault).map_err(|error| error.to_string())?;
        let rows = Arc::new(rows);
        let store = SharedStore::new(self, &rows);
        *lock(&self.shared_store) = Some(Arc::clone(&store));
        for process in &self.processes {
            let (sim, process, store) = (Arc::clone(self), Arc::clone(process), Arc::clone(&store));
            tokio::spawn(async move { sim.keep_running(&process, &store).await });
        }
        self.direct(&rows).await;
        *lock(&self.shared_store) = None;
        Ok(())
    }

    /// Handles the events of the queue until the run is over.
    async fn direct(self: &Arc<Self>, rows: &Arc<EmbeddedStore>) {
        while !self.is_over() {
            let due = {
                let mut event_queue = lock(&self.event_queue);
                let first = event_queue.events.first_key_value().map_or(u64::MAX, |((at, _), _)| *at);
                let event = if first <= self.now_ms() { event_queue.events.pop_first() } else { None };
                event.map(|(_, event)| event).ok_or(first)
            };
            match due {
                Ok(Event::Finish) => match self.running(None) {
                    None => self.schedule_in(1_000, Event::Finish),
                    Some(engine) => tokio::select! {
                        biased;
                        () = engine.process.until_exit() => self.schedule_in(1_000, Event::Finish),
                        is_over = self.finish(&engine, rows) => if is_over {
                            return;
                        },
                    },
                },
                Ok(event) => {
                    let wanted = match &event {
                        Event::Act(_, _, wanted) => *wanted,
                        _ => None,
                    };
                    let is_step = matches!(event, Event::Act(..));
                    self.handle_event(event, self.running(wanted).as_ref());
                    if is_step {
                        // The rows themselves, even if no engine can reach them.
                        let _ = self.compare_a_query(rows).await;
                        self.try_stale_write(rows).await;
                    }
                }
                Err(at_ms) => {
                    let wait = Duration::from_millis(at_ms.saturating_sub(self.now_ms()));
                    tokio::select! {
                        biased;
                        () = self.over.notified() => {}
                        () = self.event_added.notified() => {}
                        () = tokio::time::sleep(wait) => {}
                    }
                }
            }
        }
    }

    /// Returns a running engine: the requested one, or a random one.
    fn running(&self, wanted: Option<usize>) -> Option<Running> {
        let running = |process: &Arc<Process>| process.running();
        if let Some(engine) = wanted.and_then(|number| self.processes.get(number)).and_then(running) {
            return Some(engine);
        }
        let mut all: Vec<Running> = self.processes.iter().filter_map(running).collect();
        if all.is_empty() {
            return None;
        }
        let at = lock(&self.streams).engines.index(all.len());
        Some(all.swap_remove(at))
    }

    /// Restarts an engine until the run is over.
    async fn keep_running(self: &Arc<Self>, process: &Arc<Process>, store: &Arc<SharedStore>) {
        while !self.is_over() {
            process.begins(&self.script.setup);
            let seam = Seam::of(self, process);
            let exit = self.run_once(&seam, store).await;
            process.closes();
            process.ended();
            if exit == ProcessExit::Over || self.is_over() {
                return;
            }
            let downtime_ms = self.exited(process, &exit);
            self.repeat_elsewhere(process, |_| true);
            self.clients().hang_up_all(process.number);
            self.sleep(downtime_ms).await;
        }
    }

    /// Starts an engine, and lets it run until it exits.
    async fn run_once(self: &Arc<Self>, seam: &Seam, store: &Arc<SharedStore>) -> ProcessExit {
        let process = &seam.process;
        let begins = Instant::now();
        self.trace_engine_boot(process);
        let settings = lock(&process.setup).settings();
        lock(&self.orders_by).insert((settings.session_lifetime, settings.session_grace));
        self.observe_settings(&settings);
        let start = Tree::start(self.environment(seam, store), settings);
        let started = tokio::select! {
            biased;
            () = process.until_exit() => return process.take_exit(),
            started = tokio::time::timeout(BOOT_LIMIT * 10, start) => started,
        };
        let tree = match started {
            Ok(Ok(tree)) => tree,
            Ok(Err(error)) => return ProcessExit::NoStart(error.to_string()),
            Err(_) => return ProcessExit::NoStart("it took ten minutes".to_owned()),
        };
        if !self.are_faults_on() && begins.elapsed() > BOOT_LIMIT {
            let took = begins.elapsed().as_secs();
            self.observe(|observer| observer.violate("boot-ends", format!("starting took {took} s"), None));
        }
        self.open_endpoint(process, tree.engine());
        process.booted_ms.store(self.now_ms(), Ordering::Relaxed);
        process.runs(tree.engine());
        let exit = tokio::select! {
            biased;
            () = process.until_exit() => process.take_exit(),
            why = tree.failed() => ProcessExit::GaveUp(why),
        };
        process.ended();
        if exit != ProcessExit::Restart {
            process.closes();
            drop(tree);
            return exit;
        }
        tokio::select! {
            biased;
            // It may be killed meanwhile, or the run may be over.
            () = process.until_exit() => return process.take_exit(),
            stopped = tokio::time::timeout(STOP_LIMIT, tree.stop()) => if stopped.is_err() {
                let text = format!("stopping took {} s", STOP_LIMIT.as_secs());
                self.observe(|observer| observer.violate("stop-ends", text, None));
            },
        }
        exit
    }

    fn environment(self: &Arc<Self>, seam: &Seam, store: &Arc<SharedStore>) -> Environment {
        let node = |index| {
            let name = format!("node-{index}");
            Arc::new(SimNode { seam: seam.clone(), index, name, known: Default::default() }) as Arc<dyn Node>
        };
        let client: Arc<dyn Store> = Arc::new(StoreClient::of(seam.clone(), store));
        *lock(&seam.process.store) = Some(RunningStore { shared: Arc::clone(&client), rows: store.rows() });
        Environment {
            clock: Arc::new(SimClock(seam.clone())),
            entropy: Arc::new(SimEntropy(seam.clone())),
            store: client,
            nodes: (0..self.script.setup.nodes).map(node).collect(),
            webhooks: Arc::new(SimWebhooks(seam.clone())) as Arc<dyn WebhookTransport>,
            probe: Arc::new(SimProbe(seam.clone())),
        }
    }

    fn trace_engine_boot(&self, process: &Process) {
        let boots = {
            let mut trace = self.trace();
            trace.mark("the process starts");
            trace.marked("the process starts")
        };
        let number = process.number;
        self.event(process.source(), "boot", None, boots, || format!("engine {number} starts (boot {boots})"));
        if boots > MAX_BOOTS {
            self.observe(|observer| observer.violate("boot-ends", format!("engines started {MAX_BOOTS} times"), None));
        }
    }

    /// Records the exit of an engine; returns how long it is down, milliseconds.
    fn exited(&self, process: &Process, exit: &ProcessExit) -> u64 {
        let (number, source) = (process.number, process.source());
        match exit {
            ProcessExit::PowerCut | ProcessExit::Killed => {
                self.event(source, "dead", None, 1, || format!("engine {number} is killed"));
            }
            ProcessExit::Restart => {
                self.event(source, "dead", None, 2, || format!("engine {number} is shut down gracefully"));
            }
            ProcessExit::GaveUp(why) => {
                self.mark("one of several engines exits because of the store");
                self.event(source, "dead", None, 3, || format!("engine {number} exits: {why}"));
                // These faults are temporary: the engine waits, and continues.
                let text = format!("engine {number} exits: {why}");
                self.observe(|observer| observer.violate("engines-outlive-their-store", text, None));
            }
            ProcessExit::NoStart(why) => {
                self.event(source, "dead", None, 4, || format!("engine {number} cannot start: {why}"));
                if why.contains("serves another chain") {
                    self.mark("a node of another chain is refused");
                } else if !self.are_faults_on() {
                    self.observe(|observer| observer.violate("boot-ends", why.clone(), None));
                }
            }
            ProcessExit::Over => {}
        }
        let most = if self.are_faults_on() { 60_000 } else { 2_000 };
        500 + lock(&self.streams).process.wait_ms(most)
    }

    /// Pauses an engine: its calls of the environment wait, and it receives no responses. Clients time out.
    pub(super) fn pause_engine(self: &Arc<Self>, process: &Arc<Process>, for_ms: u64) {
        let until_ms = self.now_ms() + for_ms;
        process.pause(for_ms, until_ms);
        self.mark("one of several engines is paused and resumes");
        if for_ms > CLIENT_TIMEOUT_MS {
            let (sim, process) = (Arc::clone(self), Arc::clone(process));
            tokio::spawn(async move {
                sim.sleep(CLIENT_TIMEOUT_MS).await;
                if process.is_paused(sim.now_ms()) {
                    sim.repeat_elsewhere(&process, |sim| lock(&sim.streams).engines.chance(500_000));
                }
            });
        }
    }

    /// Has clients repeat what an engine has not responded to. Those that hang up drop their first request.
    fn repeat_elsewhere(self: &Arc<Self>, process: &Process, hangs_up: impl Fn(&Self) -> bool) {
        let calls = self.clients().calls_at(process.number);
        for (number, repeated) in calls {
            self.mark("a caller repeats its request at another engine");
            if hangs_up(self) {
                self.clients().hang_up(number);
            }
            let ms = 500 + lock(&self.streams).engines.wait_ms(2_000);
            match repeated {
                Repeated::Action(action, tries) => self.act_later(ms, action, tries + 1),
                Repeated::Registration(merchant) => self.register_later(ms, merchant),
            }
        }
    }

    /// Records that an engine cannot reach a peer.
    pub(super) fn cut_off(&self, process: &Process, peer: Peer, until_ms: u64) {
        lock(&self.cuts).insert((process.number, peer), until_ms);
    }

    /// Returns whether an engine cannot reach a peer now.
    pub(crate) fn is_cut_off(&self, process: &Process, peer: Peer) -> bool {
        if !self.has_shared_store() {
            return false;
        }
        lock(&self.cuts).get(&(process.number, peer)).is_some_and(|until_ms| self.now_ms() < *until_ms)
    }

    /// Draws the faults between engines and what they share at this block, and the affected engine.
    pub(super) fn roll_cluster(&self) -> Vec<(usize, FaultInjection)> {
        let mut injections = Vec::new();
        if !self.has_shared_store() {
            return injections;
        }
        let random = &mut lock(&self.streams).cluster;
        let engine = random.index(self.processes.len());
        if random.chance(self.rate(Fault::StoreCut)) {
            let most = *random.pick(&[5_000, 40_000, 120_000]);
            let for_ms = random.between(500, most);
            injections.push((engine, FaultInjection::Partition { peer: Peer::Store, for_ms }));
        }
        if random.chance(self.rate(Fault::NodeCut)) {
            let peer = Peer::Node(random.index(self.script.setup.nodes));
            injections.push((engine, FaultInjection::Partition { peer, for_ms: random.between(1_000, 120_000) }));
        }
        if random.chance(self.rate(Fault::StoreFailover)) {
            let most = *random.pick(&[2_000, 10_000, 30_000]);
            let fault = StoreFault::FailOver { for_ms: random.between(500, most) };
            injections.push((engine, FaultInjection::Store(fault)));
        }
        injections
    }
}
