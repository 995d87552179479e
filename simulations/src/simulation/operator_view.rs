//! What operators see of the running process: the condition of its nodes, and the number of active sessions.

use engine::payment::Payment;

use super::*;

/// Blocks between two counts of the active sessions.
const COUNTED_EVERY: u64 = 5;
/// Counts in a row that must exceed the maximum before it is a violation: sessions that are read, or that stop, count too.
const EXCEEDED: u32 = 3;
/// How long after its creation a session must be active, milliseconds.
const ADOPTED_MS: u64 = 5_000;

/// What the process has shown of its active sessions since it started.
#[derive(Default)]
pub(super) struct ActiveSessions {
    blocks: u64,
    exceeded: u32,
    /// When the process was ready, virtual milliseconds.
    ready_ms: u64,
}

impl Simulation {
    /// Records that the process is ready.
    pub(super) fn operators_see_it_ready(&self, process: &Process) {
        *lock(&process.active_sessions) = ActiveSessions { ready_ms: self.now_ms(), ..ActiveSessions::default() };
    }

    /// Checks what operators see after a block.
    pub(super) async fn check_operator_view(&self, process: &Process, engine: &Engine, store: &EmbeddedStore) {
        self.check_nodes(process, engine);
        if !self.is_damaged() {
            self.try_stale_write(store).await;
        }
        let is_due = {
            let mut seen = lock(&process.active_sessions);
            seen.blocks += 1;
            seen.blocks.is_multiple_of(COUNTED_EVERY)
        };
        if is_due && self.is_sound() {
            self.check_active_sessions(process, engine).await;
        }
        if is_due && !self.is_damaged() {
            self.disk.set_quiet(true);
            // An unreadable store is detected elsewhere.
            let _ = self.compare_endpoints(store).await;
            self.disk.set_quiet(false);
        }
    }

    /// Records that nodes with different heads return different data from now on, none of which is wrong.
    pub(crate) fn nodes_may_differ(&self) {
        let now_ms = self.now_ms();
        for process in &self.processes {
            process.node_healths().all_deviate(now_ms);
        }
    }

    /// Compares the condition of each node with the one that follows from its responses.
    fn check_nodes(&self, process: &Process, engine: &Engine) {
        let (states, _) = engine.chain.nodes();
        let differing = process.node_healths().differing(&states, self.now_ms());
        self.observe(|observer| match differing {
            Some(text) => observer.violate("nodes-are-called-what-they-are", text, None),
            None => observer.passes("nodes-are-called-what-they-are"),
        });
    }

    /// Compares the state of nodes with what the scenario expects at the end.
    pub(super) fn check_expected_nodes(&self, engine: &Engine) {
        let (states, _) = engine.chain.nodes();
        for (node, wanted) in &self.script.expect_nodes {
            let state = states[*node].condition;
            self.observe(|observer| {
                if state == *wanted {
                    observer.passes("expected");
                } else {
                    let text = format!("node {node} is {}, expected {}", state.as_str(), wanted.as_str());
                    observer.violate("expected", text, None);
                }
            });
        }
    }

    /// Counts the active sessions: at most as many as the settings allow, and all that were created below that limit.
    async fn check_active_sessions(&self, process: &Process, engine: &Engine) {
        let Ok(Ok(health)) = tokio::time::timeout(Duration::from_secs(1), engine.operations.health()).await else {
            return;
        };
        let most = lock(&process.setup).max_active;
        let (ready_ms, now_ms) = (lock(&process.active_sessions).ready_ms, self.now_ms());
        let wrong = self.observe(|observer| {
            let payments = || observer.payments.values().map(|known| &*known.payment);
            let claimed = payments().filter(|payment| payment.claim.is_some()).count();
            let own = observer
                .payments
                .iter()
                .filter(|(id, known)| known.stored_ms >= ready_ms && !observer.other_engine.contains(*id));
            let is_adopted = |payment: &Payment, stored_ms| {
                !payment.state.is_terminal() && stored_ms + ADOPTED_MS < now_ms && !observer.was_damaged
            };
            let adopted = own.clone().filter(|(_, known)| is_adopted(&known.payment, known.stored_ms)).count();
            let least = if own.count() <= most { adopted } else { 0 };
            let is_exceeded = {
                let mut seen = lock(&process.active_sessions);
                seen.exceeded = if health.active > most + claimed { seen.exceeded + 1 } else { 0 };
                seen.exceeded >= EXCEEDED
            };
            let text = format!(
                "{} sessions are active: at most {most}, {claimed} with claims, {least} created",
                health.active
            );
            (is_exceeded || health.active < least).then_some(text)
        });
        self.observe(|observer| match wrong {
            Some(text) => observer.violate("few-sessions-are-active", text, None),
            None => observer.passes("few-sessions-are-active"),
        });
    }
}
