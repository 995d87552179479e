//! An engine of the simulation: what belongs to its process, and the gate that its environment goes through.
//!
//! Nothing that a process does becomes visible except through its environment ([`Seam`]): store, nodes, receivers, and the
//! responses to callers. An exit closes the gate of the running process: its tasks wait for ever.

use std::{
    future::Future,
    pin::Pin,
    task::{Context as Task, Poll},
};

use tokio::task::AbortHandle;

use super::{operator_view::ActiveSessions, *};
use crate::observer::Paused;

/// An engine, from one start of its process to the next.
pub(crate) struct Process {
    /// Its number, from 0.
    pub(crate) number: usize,
    /// Whether it is one of several.
    is_one_of_several: bool,
    /// How the engine is set up when it starts next.
    pub(super) setup: Mutex<Setup>,
    /// The gate of the process that runs, or ran last.
    gate: Mutex<Arc<Gate>>,
    /// The running process's.
    pub(super) store: Mutex<Option<RunningStore>>,
    /// The running process's handles, where it is one of several.
    running: Mutex<Option<Running>>,
    /// The running process's, where clients call through one.
    pub(super) endpoint: Mutex<Option<Arc<dyn Endpoint>>>,
    /// When the process was ready, virtual milliseconds; 0 with one engine that clients call directly.
    pub(super) booted_ms: AtomicU64,
    /// When the engine first received a failed read, or a commit of unknown outcome, since the process started, virtual
    /// milliseconds; `u64::MAX` without one.
    pub(super) store_failed_ms: AtomicU64,
    /// How far its wall clock is ahead of the true time.
    skew_ms: AtomicI64,
    /// How long it was paused since it started, milliseconds.
    paused_ms: AtomicU64,
    /// The drift of the clock of its lease, parts per million.
    pub(super) drift_ppm: i32,
    pub(super) entropy: Mutex<Random>,
    /// Draws what happens at named points of the code.
    pub(super) points: Mutex<Random>,
    pub(super) armed: Mutex<ArmedPoints>,
    /// What follows from the nodes' responses to the running process.
    node_healths: Mutex<NodeHealths>,
    pub(super) active_sessions: Mutex<ActiveSessions>,
    exited: Notify,
    exit: Mutex<Option<ProcessExit>>,
}

/// What happens when the process next reaches a named point of the code, or handles an event.
#[derive(Default)]
pub(super) struct ArmedPoints {
    pub(super) kill_at: VecDeque<String>,
    pub(super) panic_at: VecDeque<String>,
    /// For how long the process is about to be paused.
    pub(super) pause_ms: Option<u64>,
}

/// The store of a process.
#[derive(Clone)]
pub(super) struct RunningStore {
    /// As the engine uses it: with latency and faults of commits.
    pub(super) shared: Arc<dyn Store>,
    /// Its rows, without latency and faults.
    pub(super) rows: Arc<EmbeddedStore>,
}

/// Why a process exits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ProcessExit {
    /// Power was lost.
    PowerCut,
    /// It was killed; the page cache survives.
    Killed,
    /// It was shut down gracefully.
    Restart,
    /// It exited with an error.
    GaveUp(String),
    /// It could not start.
    NoStart(String),
    /// The run is over.
    Over,
}

/// The gate between a running process and its environment.
#[derive(Default)]
pub(super) struct Gate {
    is_closed: AtomicBool,
    /// Until when the process is paused, virtual milliseconds.
    paused_until_ms: AtomicU64,
}

impl Gate {
    /// Returns how long the process stays paused, milliseconds; none if it is not.
    fn paused_for(&self, now_ms: u64) -> Option<u64> {
        self.paused_until_ms.load(Ordering::Relaxed).checked_sub(now_ms).filter(|left_ms| *left_ms > 0)
    }
}

impl Process {
    /// Returns an engine that has not started.
    pub(super) fn new(number: usize, root: &Random, setup: &Setup) -> Arc<Self> {
        Arc::new(Self {
            number,
            is_one_of_several: setup.engines > 1,
            running: Mutex::default(),
            setup: Mutex::new(setup.clone()),
            gate: Mutex::default(),
            store: Mutex::default(),
            endpoint: Mutex::default(),
            booted_ms: AtomicU64::new(0),
            store_failed_ms: AtomicU64::new(u64::MAX),
            skew_ms: AtomicI64::new(0),
            paused_ms: AtomicU64::new(0),
            drift_ppm: drift_of(number, setup),
            entropy: Mutex::new(root.fork("entropy")),
            points: Mutex::new(root.fork("points")),
            armed: Mutex::default(),
            node_healths: Mutex::default(),
            active_sessions: Mutex::default(),
            exited: Notify::new(),
            exit: Mutex::new(None),
        })
    }

    /// Begins another run of the process, with a gate of its own.
    pub(super) fn begins(&self, setup: &Setup) {
        *lock(&self.node_healths) = NodeHealths::new(setup.nodes);
        *lock(&self.gate) = Arc::default();
        *lock(&self.exit) = None;
        self.store_failed_ms.store(u64::MAX, Ordering::Relaxed);
    }

    /// Resets the state that is lost with the process.
    pub(super) fn ended(&self) {
        *lock(&self.running) = None;
        *lock(&self.store) = None;
        *lock(&self.endpoint) = None;
    }

    /// Kills the process: nothing it still does has an effect. A graceful shutdown lets its actors finish first.
    pub(super) fn exits(&self, exit: ProcessExit) {
        let is_orderly = exit == ProcessExit::Restart;
        lock(&self.exit).get_or_insert(exit);
        if !is_orderly {
            lock(&self.gate).is_closed.store(true, Ordering::Relaxed);
        }
        self.exited.notify_one();
    }

    /// Closes the gate of the process that ran.
    pub(super) fn closes(&self) {
        lock(&self.gate).is_closed.store(true, Ordering::Relaxed);
    }

    /// Returns for how long and until when it was paused.
    pub(crate) fn paused(&self) -> Paused {
        let until_ms = lock(&self.gate).paused_until_ms.load(Ordering::Relaxed);
        Paused { total_ms: self.paused_ms.load(Ordering::Relaxed), until_ms }
    }

    /// Pauses the process.
    pub(super) fn pause(&self, for_ms: u64, until_ms: u64) {
        self.paused_ms.fetch_add(for_ms, Ordering::Relaxed);
        lock(&self.gate).paused_until_ms.fetch_max(until_ms, Ordering::Relaxed);
    }

    /// Lets a paused process continue.
    pub(super) fn resume(&self) {
        lock(&self.gate).paused_until_ms.store(0, Ordering::Relaxed);
    }

    pub(super) fn is_paused(&self, now_ms: u64) -> bool {
        now_ms < lock(&self.gate).paused_until_ms.load(Ordering::Relaxed)
    }

    /// Records that its engine can be called.
    pub(super) fn runs(self: &Arc<Self>, engine: Engine) {
        *lock(&self.running) = Some(Running::new(engine, self));
    }

    /// Returns its engine, if it can be called and is one of several.
    pub(super) fn running(self: &Arc<Self>) -> Option<Running> {
        lock(&self.running).clone()
    }

    /// Returns its source in the trace.
    pub(super) fn source(&self) -> Source {
        if self.is_one_of_several {
            Source::Engine(u8::try_from(self.number).unwrap_or(u8::MAX))
        } else {
            Source::Process
        }
    }

    /// Ends the process because the run is over.
    pub(super) fn ends_with_run(&self) {
        *lock(&self.exit) = Some(ProcessExit::Over);
        lock(&self.gate).is_closed.store(true, Ordering::Relaxed);
        self.exited.notify_one();
    }

    /// Waits until the process exits.
    pub(super) async fn until_exit(&self) {
        while !self.has_exited() {
            self.exited.notified().await;
        }
    }

    pub(super) fn take_exit(&self) -> ProcessExit {
        lock(&self.exit).take().unwrap_or(ProcessExit::Killed)
    }

    pub(super) fn has_exited(&self) -> bool {
        lock(&self.gate).is_closed.load(Ordering::Relaxed) || lock(&self.exit).is_some()
    }

    /// Returns what follows from the nodes' responses to the running process.
    pub(crate) fn node_healths(&self) -> MutexGuard<'_, NodeHealths> {
        lock(&self.node_healths)
    }

    /// Returns how far its wall clock is ahead of the true time, milliseconds.
    pub(super) fn skew_ms(&self) -> i64 {
        self.skew_ms.load(Ordering::Relaxed)
    }

    /// Sets how far its wall clock is ahead of the true time; returns how far it was.
    pub(super) fn set_skew(&self, skew_ms: i64) -> i64 {
        self.skew_ms.swap(skew_ms, Ordering::Relaxed)
    }

    /// Returns the facade of the running process, if clients call through one.
    pub(crate) fn endpoint(&self) -> Option<Arc<dyn Endpoint>> {
        lock(&self.endpoint).clone()
    }

    /// Returns the store of the running process.
    pub(crate) fn store(&self) -> Option<Arc<dyn Store>> {
        lock(&self.store).as_ref().map(|store| Arc::clone(&store.shared))
    }

    /// Fills bytes from the engine's entropy.
    pub(crate) fn draw(&self, out: &mut [u8]) {
        lock(&self.entropy).fill(out);
    }
}

/// Returns the drift of an engine's clock, parts per million: the drifts are spread evenly over the maximum difference.
fn drift_of(number: usize, setup: &Setup) -> i32 {
    let share = |of: u32| i32::try_from(of).unwrap_or(0);
    let (number, last) = (u32::try_from(number).unwrap_or(0), u32::try_from(setup.engines - 1).unwrap_or(0));
    (setup.drift_ppm * number).checked_div(last).map_or(0, |drift| share(drift) - share(setup.drift_ppm / 2))
}

/// The simulation as one run of a process reaches it.
#[derive(Clone)]
pub(crate) struct Seam {
    pub(crate) sim: Arc<Simulation>,
    pub(crate) process: Arc<Process>,
    gate: Arc<Gate>,
}

impl Seam {
    /// Returns the seam of the process that runs now.
    pub(super) fn of(sim: &Arc<Simulation>, process: &Arc<Process>) -> Self {
        Self { sim: Arc::clone(sim), process: Arc::clone(process), gate: Arc::clone(&lock(&process.gate)) }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.gate.is_closed.load(Ordering::Relaxed)
    }

    /// Returns immediately in a running process, after the resumption in a paused one, and never in a killed one. Counts calls, to detect
    /// busy loops.
    pub(crate) async fn alive(&self) {
        let now_ms = self.sim.now_ms();
        self.sim.count_spin(&self.process, now_ms);
        while let Some(left_ms) = self.gate.paused_for(self.sim.now_ms()) {
            self.sim.sleep(left_ms).await;
        }
        if self.is_closed() {
            std::future::pending::<()>().await;
        }
    }

    /// Returns the wall clock of the process, which may be wrong.
    pub(crate) fn wall(&self) -> Timestamp {
        self.sim.wall_of(&self.process)
    }
}

/// A running engine that clients call.
#[derive(Clone)]
pub(crate) struct Running {
    engine: Engine,
    gate: Arc<Gate>,
    /// The process it runs in.
    pub(crate) process: Arc<Process>,
}

impl Running {
    pub(super) fn new(engine: Engine, process: &Arc<Process>) -> Self {
        Self { engine, gate: Arc::clone(&lock(&process.gate)), process: Arc::clone(process) }
    }

    /// Returns the handles for requests of a caller, so that the audit log names it.
    pub(crate) fn by(&self, actor: engine::audit::Actor) -> Self {
        Self { engine: self.engine.by(actor), ..self.clone() }
    }

    /// Runs the task of a client that calls the engine. It is paused with the process, and ends with it.
    pub(crate) fn spawn(
        &self,
        sim: &Arc<Simulation>,
        task: impl Future<Output = ()> + Send + 'static,
    ) -> Option<AbortHandle> {
        if !self.process.is_one_of_several {
            tokio::spawn(task);
            return None;
        }
        let gated =
            Gated { sim: Arc::clone(sim), gate: Arc::clone(&self.gate), resumption: None, task: Box::pin(task) };
        Some(tokio::spawn(gated).abort_handle())
    }
}

/// The task of a client while it calls an engine: what the engine does for it happens in the same task.
struct Gated {
    sim: Arc<Simulation>,
    gate: Arc<Gate>,
    resumption: Option<Pin<Box<tokio::time::Sleep>>>,
    task: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl Future for Gated {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Task<'_>) -> Poll<()> {
        let gated = &mut *self;
        while let Some(left_ms) = gated.gate.paused_for(gated.sim.now_ms()) {
            let sleep = || Box::pin(tokio::time::sleep(Duration::from_millis(left_ms)));
            if gated.resumption.get_or_insert_with(sleep).as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            gated.resumption = None;
        }
        if gated.gate.is_closed.load(Ordering::Relaxed) {
            return Poll::Pending;
        }
        gated.task.as_mut().poll(context)
    }
}

impl std::ops::Deref for Running {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        &self.engine
    }
}
