//! Runs a script: restarts the engine until the run is over, and handles the events of the queue.

use actors::environment::{Node, WebhookTransport};
use engine::billing::{Schedule, Tiers};
use futures_util::FutureExt as _;

use super::environment::{SimClock, SimEntropy, SimProbe};
use super::*;
use crate::{clients, hive::nodes::SimNode, receivers::transport::SimWebhooks, store::SimStore};

/// Maximum duration of a start without faults.
const BOOT_LIMIT: Duration = Duration::from_secs(60);
/// Maximum duration of a graceful shutdown, with any faults.
const STOP_LIMIT: Duration = Duration::from_secs(600);
/// Maximum starts in one run; more are a crash loop.
const MAX_BOOTS: u32 = 2_000;

/// Runs a script from its first to its last moment. Must not be called inside a runtime.
///
/// # Panics
/// If the operating system gives no timer.
#[must_use]
pub fn run(script: &Script, keeps_lines: bool) -> Outcome {
    let _watch = crate::panics::watch();
    let sim = Simulation::new(script.clone(), keeps_lines);
    if sim.has_shared_store() {
        return cluster::run(&sim);
    }
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
            // The disk is cut off first: a dropped task must not write any more.
            sim.disk.detach();
            sim.time.stop();
            sim.processes[0].ended();
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
    /// Starts the engine, and runs until it exits.
    async fn live(self: Arc<Self>) -> ProcessExit {
        let process = &self.processes[0];
        self.time.start();
        process.begins(&self.script.setup);
        self.is_stopping.store(false, Ordering::Relaxed);
        self.catch_up();
        let booted = tokio::select! {
            biased;
            () = process.until_exit() => return process.take_exit(),
            booted = tokio::time::timeout(BOOT_LIMIT * 10, self.boot(process)) => booted,
        };
        let (tree, store) = match booted {
            Ok(Ok(booted)) => booted,
            Ok(Err(why)) => return if process.has_exited() { process.take_exit() } else { ProcessExit::NoStart(why) },
            Err(_) => return ProcessExit::NoStart("it took ten minutes".to_owned()),
        };
        let engine = Running::new(tree.engine(), process);
        let exit = self.drive(&tree, &engine, &store).await;
        if exit == ProcessExit::Restart {
            self.is_stopping.store(true, Ordering::Relaxed);
            // Pending commits may still be written; new ones are refused.
            let stopped = async {
                tree.stop().await;
                store.close().await;
            };
            tokio::select! {
                biased;
                // Power may be lost meanwhile, and then no caller gets a response.
                () = process.until_exit() => return process.take_exit(),
                stopped = tokio::time::timeout(STOP_LIMIT, stopped) => if stopped.is_err() {
                    let text = format!("stopping took {} s", STOP_LIMIT.as_secs());
                    self.observe(|observer| observer.violate("stop-ends", text, None));
                    return process.take_exit();
                },
            }
        }
        exit
    }

    async fn boot(self: &Arc<Self>, process: &Arc<Process>) -> Result<(Tree, Arc<EmbeddedStore>), String> {
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
        let setup = lock(&process.setup).clone();
        let Setup { cache_bytes, log_bytes, .. } = setup;
        let options = Options { cache_bytes, log_bytes, mode: CommitMode::Inline, may_create: true };
        if self.observe(|observer| !observer.unknown_commits.is_empty()) {
            // Only undamaged rows show the outcome of a commit.
            self.repair_rows();
        }
        self.disk_failed.store(false, Ordering::Relaxed);
        let [database, logs @ ..] = self.disk.attach(&on_incident);
        let vault = lock(&self.sealing).vault();
        let store = EmbeddedStore::open_backends(database, logs, options, vault).map_err(|error| error.to_string())?;
        // The old key is removed once the new one is in force.
        lock(&self.sealing).previous = None;
        let store = Arc::new(store);
        self.compare(&store).await?;
        let seam = Seam::of(self, process);
        let shared: Arc<dyn Store> = Arc::new(SimStore::of(seam.clone(), Arc::clone(&store)));
        *lock(&process.store) = Some(RunningStore { shared: Arc::clone(&shared), rows: Arc::clone(&store) });
        let env = Environment {
            clock: Arc::new(SimClock(seam.clone())),
            entropy: Arc::new(SimEntropy(seam.clone())),
            store: shared,
            nodes: (0..self.script.setup.nodes)
                .map(|index| {
                    let name = format!("node-{index}");
                    Arc::new(SimNode { seam: seam.clone(), index, name, known: Default::default() }) as Arc<dyn Node>
                })
                .collect(),
            webhooks: Arc::new(SimWebhooks(seam.clone())) as Arc<dyn WebhookTransport>,
            probe: Arc::new(SimProbe(seam)),
        };
        let settings = self.next_settings();
        *lock(&self.settings) = Some(settings.clone());
        lock(&self.orders_by).clear();
        lock(&self.orders_by).insert((settings.session_lifetime, settings.session_grace));
        self.observe_settings(&settings);
        self.observe(|observer| {
            // A new process begins with a full bucket.
            observer.posts_ms.clear();
            observer.flat_tiers = flat_tiers(&settings);
            observer.claim_finality = Some((settings.x402.irreversible_from_cents, settings.x402.finality));
        });
        let tree = Tree::start(env, settings).await.map_err(|error| error.to_string())?;
        self.operators_see_it_ready(process);
        self.check_epoch(&store).await;
        self.open_endpoint(process, tree.engine());
        process.booted_ms.store(self.now_ms(), Ordering::Relaxed);
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
        self.event(Source::Process, "boot", None, boots, || format!("the process starts (boot {boots})"));
        if boots > u64::from(MAX_BOOTS) {
            self.observe(|observer| observer.violate("boot-ends", format!("it started {MAX_BOOTS} times"), None));
        }
    }

    /// Handles the events of the queue until the process exits.
    async fn drive(self: &Arc<Self>, tree: &Tree, engine: &Running, store: &Arc<EmbeddedStore>) -> ProcessExit {
        let process = &engine.process;
        loop {
            if process.has_exited() {
                return process.take_exit();
            }
            let pause_ms = lock(&process.armed).pause_ms.take();
            if let Some(pause_ms) = pause_ms {
                self.pause(process, pause_ms);
            }
            let due = {
                let mut event_queue = lock(&self.event_queue);
                let first = event_queue.events.first_key_value().map(|((at, _), _)| *at).unwrap_or(u64::MAX);
                let event = if first <= self.now_ms() { event_queue.events.pop_first() } else { None };
                event.map(|(_, event)| event).ok_or(first)
            };
            match due {
                Ok(Event::Finish) => tokio::select! {
                    biased;
                    // A broken invariant ends the process, which then sends no response.
                    () = process.until_exit() => self.schedule_in(1_000, Event::Finish),
                    is_over = self.finish(engine, store) => if is_over {
                        return ProcessExit::Over;
                    },
                },
                Ok(event) => {
                    let (is_step, is_block) = (matches!(event, Event::Act(..)), matches!(event, Event::Block));
                    self.handle_event(event, Some(engine));
                    if is_block && !process.has_exited() {
                        self.check_operator_view(process, engine, store).await;
                    }
                    if is_step && !self.is_damaged() {
                        self.disk.set_quiet(true);
                        // An unreadable store is detected elsewhere.
                        let _ = self.compare_a_query(store).await;
                        self.disk.set_quiet(false);
                    }
                }
                Err(at_ms) => {
                    let wait = Duration::from_millis(at_ms.saturating_sub(self.now_ms()));
                    tokio::select! {
                        biased;
                        () = process.until_exit() => {}
                        () = self.event_added.notified() => {}
                        why = tree.failed() => return ProcessExit::GaveUp(why),
                        () = tokio::time::sleep(wait) => {}
                    }
                }
            }
        }
    }

    /// Lets time pass while the process is paused: the environment continues, and afterwards everything that the process waited for has arrived
    /// already.
    fn pause(self: &Arc<Self>, process: &Process, for_ms: u64) {
        // The clock moves at the first poll; what would then let the tasks run is not waited for.
        let _ = tokio::time::advance(Duration::from_millis(for_ms)).now_or_never();
        self.time.moved();
        let store_failed_ms = process.store_failed_ms.swap(u64::MAX, Ordering::Relaxed);
        self.catch_up();
        if store_failed_ms < u64::MAX {
            process.store_failed_ms.store(self.now_ms(), Ordering::Relaxed);
        }
        // Everything that was paused continues immediately.
        self.observe(|observer| observer.posts_ms.clear());
        self.mark("a process is paused and resumes");
    }

    /// Executes what became due while no process was running.
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

    pub(super) fn handle_event(self: &Arc<Self>, event: Event, engine: Option<&Running>) {
        match event {
            Event::Block => self.block(self.now_ms()),
            Event::Register(merchant) => clients::register(self, engine, merchant),
            Event::Act(Action::Inject(injection), _, named) => self.inject(&injection, named),
            Event::Act(action, tries, _) => clients::act(self, engine, action, tries),
            Event::BeginBilling => self.begin_billing(),
            Event::Heal => self.heal(),
            Event::Finish => {}
        }
    }

    /// Restarts the engine with the setting that names the operator's merchant.
    fn begin_billing(self: &Arc<Self>) {
        if self.clients().merchants.contains_key(&0) {
            self.exit_process(&self.processes[0], ProcessExit::Restart);
        } else {
            self.schedule_in(2_000, Event::BeginBilling);
        }
    }

    /// Handles the exit of a process.
    fn after(self: &Arc<Self>, exit: &ProcessExit) {
        let downtime_ms = {
            let mut streams = lock(&self.streams);
            let most = if self.are_faults_on() { 20_000 } else { 2_000 };
            500 + streams.process.wait_ms(most)
        };
        match exit {
            ProcessExit::PowerCut => {
                if self.disk.has_unsynced() {
                    self.mark("power is lost with unsynced writes");
                }
                if self.disk.lose_unsynced() {
                    self.mark("a sector is torn");
                }
                self.event(Source::Process, "dead", None, 0, || "power was lost".to_owned());
            }
            ProcessExit::Killed => self.event(Source::Process, "dead", None, 1, || "the process is killed".to_owned()),
            ProcessExit::Restart => {
                self.event(Source::Process, "dead", None, 2, || "the process is shut down gracefully".to_owned());
            }
            ProcessExit::GaveUp(why) => {
                self.mark("the engine exits because of its store");
                self.damage_stops_nothing(why);
                self.event(Source::Process, "dead", None, 3, || format!("the engine exits: {why}"));
            }
            ProcessExit::NoStart(why) => {
                self.event(Source::Process, "dead", None, 4, || format!("the engine cannot start: {why}"));
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
            self.mark("a caller gets no response");
            self.act_later(1_000, action, tries + 1);
        }
    }
}

/// Returns the fee tiers that follow from the settings where merchants are billed.
fn flat_tiers(settings: &actors::Settings) -> Option<Schedule> {
    settings.billing.merchant?;
    Some(Schedule { version: 0, tiers: Tiers::flat(settings.fee_percent), updated_at: Timestamp::EPOCH })
}
