//! What other modules use of a simulation: time, random streams, observer, trace, event queue.

use super::*;

impl Simulation {
    pub(crate) async fn sleep(&self, ms: u64) {
        if ms > 0 {
            tokio::time::sleep(Duration::from_millis(ms)).await;
        }
    }

    /// Returns virtual milliseconds since the simulation began.
    pub(crate) fn now_ms(&self) -> u64 {
        self.time.now_ms()
    }

    /// Returns the wall clock of a process, which may be wrong.
    pub(crate) fn wall_of(&self, process: &Process) -> Timestamp {
        self.wall_at(process, self.now_ms())
    }

    pub(super) fn wall_at(&self, process: &Process, now_ms: u64) -> Timestamp {
        let true_ms = EPOCH_SECONDS * 1_000 + now_ms;
        Timestamp::from_millis(true_ms.saturating_add_signed(process.skew_ms()))
    }

    /// Returns the time between two blocks.
    pub(super) fn block_ms(&self) -> u64 {
        self.script.setup.block_seconds * 1_000
    }

    /// Returns the settings of the running engine.
    pub(crate) fn engine_settings(&self) -> actors::Settings {
        lock(&self.settings).clone().unwrap_or_else(|| self.next_settings())
    }

    /// Shows the observer the settings that every engine has.
    pub(super) fn observe_settings(&self, settings: &actors::Settings) {
        self.observe(|observer| {
            observer.event_retention = settings.event_retention;
            observer.account_change_wait = settings.account_change_wait;
            (observer.metadata_retention, observer.note_retention) =
                (settings.metadata_retention, settings.note_retention);
        });
    }

    /// Returns whether an engine may have given a session this lifetime and grace period; none for its own lifetime.
    pub(crate) fn may_give(&self, lifetime: Option<Duration>, grace: Duration, lives: Duration) -> bool {
        let given = lock(&self.orders_by);
        given.iter().any(|(usual, usual_grace)| lives == lifetime.unwrap_or(*usual) && grace == *usual_grace)
    }

    /// Returns the settings of the engine that starts next.
    pub(super) fn next_settings(&self) -> actors::Settings {
        let setup = lock(&self.processes[0].setup).clone();
        let mut settings = setup.settings();
        if setup.policies.bills {
            settings.billing.merchant = self.clients().merchants.get(&0).map(|operator| operator.id);
        }
        settings
    }

    pub(crate) fn rate(&self, fault: Fault) -> u32 {
        if self.are_faults_on() { self.script.faults.ppm(fault) } else { 0 }
    }

    /// Returns the maximum of a latency: latencies end with the faults, too.
    pub(crate) fn calmed(&self, most_ms: u64) -> u64 {
        if self.are_faults_on() { most_ms } else { most_ms.min(50) }
    }

    pub(super) fn are_faults_on(&self) -> bool {
        self.faults_on.load(Ordering::Relaxed)
    }

    pub(crate) fn hive(&self) -> MutexGuard<'_, Hive> {
        lock(&self.hive)
    }

    /// Returns the store of a process that runs.
    pub(super) fn running_store(&self) -> Option<RunningStore> {
        self.processes.iter().find_map(|process| lock(&process.store).clone())
    }

    pub(crate) fn clients(&self) -> MutexGuard<'_, ClientState> {
        lock(&self.clients)
    }

    pub(crate) fn receivers(&self) -> MutexGuard<'_, Receivers> {
        lock(&self.receivers)
    }

    pub(super) fn trace(&self) -> MutexGuard<'_, Trace> {
        lock(&self.trace)
    }

    /// Calls the observer; ends the run if an invariant is broken.
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
            self.disk.detach();
            self.is_over.store(true, Ordering::Relaxed);
            self.over.notify_one();
            self.processes.iter().for_each(|process| process.ends_with_run());
        }
        seen
    }

    pub(crate) fn event(
        &self,
        source: Source,
        kind: &'static str,
        session: Option<u32>,
        detail: u64,
        text: impl FnOnce() -> String,
    ) {
        self.trace().event(self.now_ms(), source, kind, session, detail, text);
    }

    pub(crate) fn fault(&self, source: Source, kind: &'static str, detail: u64, text: impl FnOnce() -> String) {
        self.trace().fault(self.now_ms(), source, kind, detail, text);
    }

    /// Records that a fault affects a node, with a line in the trace.
    pub(crate) fn count_node_fault(&self, fault: &'static str, node: usize, text: impl FnOnce() -> String) {
        self.trace().count_node_fault(fault, node);
        self.fault(Source::Ledger, fault, node as u64, text);
    }

    pub(crate) fn mark(&self, name: &'static str) {
        self.trace().mark(name);
    }

    pub(super) fn schedule(&self, at_ms: u64, event: Event) {
        let mut event_queue = lock(&self.event_queue);
        event_queue.next += 1;
        let number = event_queue.next;
        event_queue.events.insert((at_ms, number), event);
    }

    pub(super) fn schedule_in(&self, ms: u64, event: Event) {
        self.schedule(self.now_ms() + ms, event);
        // A wait for the next event may be too long for this one.
        self.event_added.notify_one();
    }

    pub(crate) fn act_later(&self, ms: u64, action: Action, tries: u32) {
        self.schedule_in(ms, Event::Act(action, tries, None));
    }

    pub(crate) fn register_later(&self, ms: u64, merchant: usize) {
        self.schedule_in(ms, Event::Register(merchant));
    }

    pub(crate) fn client_wait_ms(&self) -> u64 {
        lock(&self.streams).clients.wait_ms(400)
    }

    pub(crate) fn loses_reply(&self) -> bool {
        let rate = self.rate(Fault::ReplyLost);
        let is_drawn = lock(&self.streams).clients.chance(rate);
        let is_chosen = {
            let counter = &mut lock(&self.armed_faults).lose_reply_in;
            *counter = counter.map(|left| left.saturating_sub(1));
            counter.take_if(|left| *left == 0).is_some()
        };
        let lost = is_drawn || is_chosen;
        if lost {
            self.fault(Source::Process, Fault::ReplyLost.as_str(), 0, || "a response to a caller is lost".to_owned());
        }
        lost
    }

    /// Draws whether a client disconnects, after so many milliseconds.
    pub(crate) fn leaves_after_ms(&self) -> Option<u64> {
        let rate = self.rate(Fault::ClientLeaves);
        let random = &mut lock(&self.streams).leaving;
        random.chance(rate).then(|| *random.pick(&[0, 1, 500, 3_000, 25_000]))
    }

    /// Draws whether a client that left returns.
    pub(crate) fn returns(&self) -> bool {
        lock(&self.streams).leaving.chance(500_000)
    }

    /// Draws whether the agent with a wallet is killed before a step of its payment.
    pub(crate) fn kills_agent(&self, step: &'static str) -> bool {
        let rate = self.rate(Fault::AgentKill);
        let is_killed = lock(&self.streams).wallets.chance(rate);
        if is_killed {
            let text = || format!("the agent with a wallet is killed before {step}");
            self.fault(Source::Payer, Fault::AgentKill.as_str(), 0, text);
        }
        is_killed
    }

    pub(crate) fn verifies_first(&self) -> bool {
        lock(&self.streams).clients.chance(300_000)
    }

    pub(crate) fn has_waiting_webhooks(&self) -> bool {
        lock(&self.observer)
            .deliveries
            .values()
            .any(|delivery_state| delivery_state.due_at.is_some() && delivery_state.attempts > 0)
    }

    /// Draws how long a group of commits is collected, and how long its sync takes.
    pub(crate) fn commit_times(&self) -> (u64, u64) {
        let slow = lock(&self.armed_faults).disk_slow.filter(|(_, until)| self.now_ms() < *until);
        let most = self.calmed(slow.map_or(self.script.setup.commit_ms, |(commit_ms, _)| commit_ms));
        let random = &mut lock(&self.streams).store;
        // Commits of the same moment belong to the group.
        (random.wait_ms(most).max(1), random.wait_ms(most))
    }

    /// Returns whether an invariant was violated, where there are several engines.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Draws how long a request takes to the shared store, and its response back, milliseconds.
    pub(crate) fn store_trip(&self) -> (u64, u64) {
        let most = self.calmed(self.script.setup.store_ms) / 2;
        if most == 0 {
            return (0, 0);
        }
        let random = &mut lock(&self.streams).network;
        (random.wait_ms(most), random.wait_ms(most))
    }

    /// Draws the timeout of a failed connection attempt, milliseconds.
    pub(crate) fn connect_ms(&self) -> u64 {
        lock(&self.streams).network.between(1, 1_000)
    }

    /// Draws the outcome of a commit whose connection breaks; none where it does not break.
    pub(crate) fn draw_broken_commit(&self) -> Option<CommitOutcome> {
        let rate = self.rate(Fault::CommitBroken);
        let random = &mut lock(&self.streams).network;
        if !random.chance(rate) {
            return None;
        }
        let after_ms = random.between(1, *random.clone().pick(&[50, 2_000, 20_000]));
        Some(match random.below(4) {
            0 => CommitOutcome::Applied,
            1 => CommitOutcome::Dropped,
            2 => CommitOutcome::Late { after_ms },
            _ => CommitOutcome::Running { after_ms },
        })
    }

    /// Draws whether the commit queue is full.
    pub(crate) fn is_store_busy(&self) -> bool {
        let busy = self.rate(Fault::StoreBusy);
        lock(&self.streams).store.chance(busy)
    }

    /// Returns a session's number in the script.
    pub(crate) fn session(&self, id: PaymentId) -> Option<u32> {
        lock(&self.observer).payments.get(&id).and_then(|known| known.session)
    }

    pub(crate) fn session_of_tx(&self, tx_id: TxId) -> Option<u32> {
        let observer = lock(&self.observer);
        observer.target(tx_id).and_then(|id| observer.payments.get(&id)).and_then(|known| known.session)
    }
}
