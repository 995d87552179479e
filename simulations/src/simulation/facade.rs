//! The facade of the running process, and the valid reasons for a 503 response.

use engine::payment::Cancellation;

use super::*;
use crate::front::Boot;

/// How long after a start the engine may report that it is not ready: it recovers, and has no price yet.
const SETTLES_MS: u64 = 60_000;

/// The durable state of a payment that its clients can see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DurableState {
    pub(crate) state: State,
    pub(crate) cancellation: Option<Cancellation>,
}

impl Simulation {
    /// Creates the facade of the process that has started, if clients call through one.
    pub(super) fn open_endpoint(self: &Arc<Self>, process: &Arc<Process>, engine: Engine) {
        if !self.script.setup.facade {
            return;
        }
        let boots = self.trace().marked("the process starts");
        let mut random = Random::new(self.script.seed).fork("facade").fork(&boots.to_string());
        let mut secret = [0; 32];
        random.fill(&mut secret);
        let front = front::installed().expect("a simulation with a facade needs an installed one");
        // The process of this clock owns the simulation that owns its facade.
        let (sim, of) = (Arc::downgrade(self), Arc::clone(process));
        let now = move || sim.upgrade().map_or(Timestamp::EPOCH, |sim| sim.wall_of(&of));
        let boot = Boot { engine, now: Arc::new(now), secret, seed: random.draw() };
        *lock(&process.endpoint) = Some(front.open(boot));
    }

    /// Returns whether an engine may respond that it is unavailable: its disk, its nodes or its actors fail, it is about to
    /// exit, or it has just started.
    pub(crate) fn may_be_unavailable(&self, process: &Process) -> bool {
        let is_settling = self.now_ms() < process.booted_ms.load(Ordering::Relaxed) + SETTLES_MS;
        let has_injections = || self.script.steps.iter().any(|step| matches!(step.action, Action::Inject(_)));
        let is_disturbed = !self.is_sound() && (self.script.faults.on().next().is_some() || has_injections());
        process.has_exited() || is_settling || (self.are_faults_on() && is_disturbed)
    }

    /// Returns the durable state of a payment.
    pub(crate) fn durable_state(&self, id: PaymentId) -> Option<DurableState> {
        self.observe(|observer| {
            let payment = &observer.payments.get(&id)?.payment;
            Some(DurableState { state: payment.state, cancellation: payment.cancellation })
        })
    }
}
