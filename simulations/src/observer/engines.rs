//! The duties of several engines: their holders, the claims before webhooks are sent, and the
//! requests to nodes.

use storage::{Duty, EngineId};

use super::*;
use crate::hive::nodes::HEAD;

/// How long after a claim of a webhook the request is sent, milliseconds: its content is read in between, from a store that may not
/// be reachable immediately.
const CLAIM_LASTS_MS: u64 = 10_000;
/// How much later than its lease allows an engine may claim a webhook, milliseconds: clocks drift.
const CLAIM_DRIFT_MS: u64 = 2_000;
/// How long an engine repeats what failed, milliseconds.
const REPEATED_MS: u64 = 7_000;
/// How long an engine may not know of another one after its renewal is due, milliseconds.
const UNNOTICED_MS: u64 = 10_000;
/// Interval after which the counters of requests to nodes are reset, milliseconds.
const COUNTED_MS: u64 = 600_000;
/// Requests to one node beyond those of a single engine in that interval, for each engine: a change of the reader repeats some.
const REPEATED_REQUESTS: u64 = 20;

/// The duties of several engines. Times are virtual milliseconds.
#[derive(Default)]
pub struct EngineDuties {
    /// Engines with a lease in the store.
    leases: BTreeSet<EngineId>,
    /// Since when at least two engines have one.
    shared_since_ms: Option<u64>,
    /// The terms of duties.
    terms: BTreeMap<Duty, u64>,
    /// When an engine last learned that the store accepted its claim of webhooks, by its number, and how long it had been paused.
    claimed_ms: BTreeMap<(usize, Duty), (u64, u64)>,
    /// When an engine last sent a renewal of its lease, and when it sent the last one that it knows to be accepted.
    renewal_sent_ms: BTreeMap<usize, u64>,
    renewed_ms: BTreeMap<usize, u64>,
    /// When a commit of an engine last failed because of the store, and how long it had been paused.
    failed_ms: BTreeMap<usize, (u64, u64)>,
    /// Which engine sent an attempt that is not recorded, in which term of its duty, and the event.
    sent: BTreeMap<(DeliveryId, u32), (usize, u64, EventId)>,
    /// Requests that the scanner sends to each node, since `counted_since_ms`.
    requests: BTreeMap<(&'static str, usize), u64>,
    counted_since_ms: u64,
}

/// For how long an engine was paused, and until when, virtual milliseconds.
#[derive(Debug, Clone, Copy)]
pub struct Paused {
    /// The total duration.
    pub total_ms: u64,
    /// Until when; 0 if it never was.
    pub until_ms: u64,
}

/// How several engines are set up.
#[derive(Debug, Clone, Copy, Default)]
pub struct EngineSetup {
    /// How many there are; 0 for a single one.
    pub engines: u64,
    /// How long a lease lasts, milliseconds.
    pub lease_ms: u64,
    /// How long an attempt to deliver a webhook may take, milliseconds.
    pub webhook_timeout_ms: u64,
    /// How often the nodes are polled, milliseconds.
    pub poll_ms: u64,
    /// The longest wait while failures happen one at a time, milliseconds; none if more fails.
    pub single_failure_ms: Option<u64>,
}

impl Observer {
    /// Records that an engine has a lease.
    pub(super) fn lease_written(&mut self, engine: EngineId) {
        self.duties.leases.insert(engine);
        if self.duties.leases.len() > 1 {
            self.duties.shared_since_ms.get_or_insert(self.now_ms);
        }
    }

    /// Records the end of a lease.
    pub(super) fn lease_ended(&mut self, engine: EngineId, by: EngineId) {
        self.duties.leases.remove(&engine);
        if self.duties.leases.len() < 2 {
            self.duties.shared_since_ms = None;
        }
        self.marks.push(if engine == by { "an engine ends its lease" } else { "an engine ends the lease of another" });
    }

    /// Records that a duty was taken or released.
    pub(super) fn duty_written(&mut self, duty: Duty, term: u64) {
        self.duties.terms.insert(duty, term);
    }

    /// Records that an engine sends a batch to the store, and checks that it claims webhooks only within its lease.
    pub(crate) fn commit_sent(&mut self, engine: usize, batch: &Batch, paused: Paused) {
        let is_claim = |write: &Write| matches!(write, Write::OnDuty { duty: Duty::Webhooks(_), .. });
        if batch.writes.iter().any(|write| matches!(write, Write::Lease { .. })) {
            self.duties.renewal_sent_ms.insert(engine, self.now_ms);
        }
        if batch.writes.is_empty() || !batch.writes.iter().all(is_claim) {
            return;
        }
        let EngineSetup { lease_ms, webhook_timeout_ms, .. } = self.engine_setup;
        let renewed_ms = self.duties.renewed_ms.get(&engine).copied().unwrap_or(0);
        let passed_ms = self.now_ms.saturating_sub(renewed_ms);
        let is_repeated = self
            .duties
            .failed_ms
            .get(&engine)
            .is_some_and(|(at, paused_ms)| at + REPEATED_MS + paused.total_ms - paused_ms >= self.now_ms);
        if passed_ms > lease_ms - webhook_timeout_ms + CLAIM_DRIFT_MS && !is_repeated {
            let text = format!("engine {engine} claims webhooks {passed_ms} ms after the last renewal of its lease");
            self.violate("webhooks-are-claimed", text, None);
        }
    }

    /// Records that a commit of an engine fails because of the store.
    pub(crate) fn commit_failed(&mut self, engine: usize, paused: Paused) {
        self.duties.failed_ms.insert(engine, (self.now_ms, paused.total_ms));
    }

    /// Records that an engine learned that the store accepted a batch.
    pub(crate) fn learned_of(&mut self, engine: usize, batch: &Batch, paused: Paused) {
        for write in &batch.writes {
            match write {
                Write::OnDuty { duty: duty @ Duty::Webhooks(_), .. } => {
                    self.duties.claimed_ms.insert((engine, *duty), (self.now_ms, paused.total_ms));
                }
                Write::Lease { .. } => {
                    let sent_ms = self.duties.renewal_sent_ms.get(&engine).copied().unwrap_or(0);
                    self.duties.renewed_ms.insert(engine, sent_ms);
                }
                _ => {}
            }
        }
    }

    /// Checks that an engine sends a webhook only under a claim that the store accepted, and repeats the attempt of another one
    /// only once the duty has passed on.
    pub(crate) fn webhook_claimed(&mut self, engine: usize, headers: &[(String, String)], body: &[u8], paused: Paused) {
        let Some((delivery, attempt, event, ..)) = read_webhook(headers, body) else { return };
        let Some(endpoint) = self.deliveries.get(&delivery).map(|delivery_state| delivery_state.endpoint) else {
            return;
        };
        let duty = Duty::webhooks_of(endpoint);
        let term = self.duties.terms.get(&duty).copied().unwrap_or(0);
        let payment = self.deliveries.get(&delivery).map(|delivery_state| delivery_state.payment);
        let unnoticed_ms = self.engine_setup.lease_ms / 5 + UNNOTICED_MS;
        let knows_others = self
            .duties
            .shared_since_ms
            .is_some_and(|since_ms| since_ms.max(paused.until_ms) + unnoticed_ms < self.now_ms);
        let claimed_ms = self.duties.claimed_ms.get(&(engine, duty)).copied();
        let is_claimed =
            claimed_ms.is_some_and(|(at, paused_ms)| at + CLAIM_LASTS_MS + paused.total_ms - paused_ms >= self.now_ms);
        let before = self.duties.sent.insert((delivery, attempt), (engine, term, event));
        let wrong = match before {
            _ if knows_others && !is_claimed => Some(format!("engine {engine} sends {delivery} without a claim")),
            Some((_, _, before)) if before != event => Some(format!("attempt {attempt} of {delivery} has two events")),
            Some((other, in_term, _)) if other != engine && in_term == term => {
                Some(format!("engines {other} and {engine} send attempt {attempt} of {delivery}, both in term {term}"))
            }
            before => {
                if before.is_some_and(|(other, ..)| other != engine) {
                    self.marks.push("an attempt is repeated by the engine that took over");
                }
                None
            }
        };
        match wrong {
            Some(text) => self.violate("webhooks-are-claimed", text, payment),
            None => self.passes("webhooks-are-claimed"),
        }
    }

    /// Records that an attempt was recorded: it is not repeated.
    pub(super) fn attempt_recorded(&mut self, delivery: DeliveryId, attempt: u32) {
        self.duties.sent.remove(&(delivery, attempt));
    }

    /// Counts a request for what the scanner reads.
    pub(crate) fn requests(&mut self, kind: &'static str, node: usize) {
        *self.duties.requests.entry((kind, node)).or_default() += 1;
    }

    /// Checks that several engines request about as much of each node as one does.
    pub(crate) fn requests_are_shared(&mut self) {
        let EngineSetup { engines, poll_ms, .. } = self.engine_setup;
        let passed_ms = self.now_ms - self.duties.counted_since_ms;
        if engines == 0 || passed_ms < COUNTED_MS {
            return;
        }
        self.duties.counted_since_ms = self.now_ms;
        let polls = passed_ms / poll_ms.max(1);
        // Engines that do not read the ledger request its head at every tenth poll.
        let heads = polls + polls * (engines - 1) / 10;
        // A poll reads irreversible blocks, and reversible ones.
        let most = |kind| REPEATED_REQUESTS * engines + if kind == HEAD { heads } else { 2 * polls };
        let counted = std::mem::take(&mut self.duties.requests);
        if !self.is_undisturbed() {
            return;
        }
        match counted.into_iter().find(|((kind, _), count)| *count > most(*kind)) {
            Some(((kind, node), count)) => {
                let text = format!("{engines} engines request {kind} of node {node} {count} times in {polls} polls");
                self.violate("requests-are-shared", text, None);
            }
            None => self.passes("requests-are-shared"),
        }
    }

    /// Returns whether failures happen one at a time only.
    fn is_undisturbed(&self) -> bool {
        self.prompt_ms.is_some() || self.engine_setup.single_failure_ms.is_some()
    }

    /// Checks, while failures happen one at a time, that nothing waits longer than a takeover takes.
    pub(crate) fn failures_are_bridged(&mut self) {
        let Some(bound_ms) = self.engine_setup.single_failure_ms else { return };
        let late = self.late_delivery(bound_ms).or_else(|| self.late_expiry(bound_ms));
        let late = late.or_else(|| self.late_completion(bound_ms)).or_else(|| self.late_claim(bound_ms));
        match late {
            Some((text, payment)) => self.violate("failures-are-bridged", text, Some(payment)),
            None => self.passes("failures-are-bridged"),
        }
    }

    /// Returns a delivery that has been due for longer and is not being sent.
    fn late_delivery(&self, bound_ms: u64) -> Option<(String, PaymentId)> {
        self.deliveries.iter().find_map(|(id, delivery_state)| {
            let due_ms = crate::options::since_epoch(delivery_state.due_at?).max(delivery_state.scheduled_ms);
            let waited_ms = self.now_ms.saturating_sub(due_ms);
            let is_own = |other: &DeliveryState| {
                (other.payment, other.endpoint) == (delivery_state.payment, delivery_state.endpoint)
            };
            let is_sent = self.posts_in_flight.keys().any(|other| self.deliveries.get(other).is_some_and(is_own));
            let text = || format!("{id} has been due for {waited_ms} ms and is not sent");
            (waited_ms > bound_ms && !is_sent).then(|| (text(), delivery_state.payment))
        })
    }

    /// Returns a payment that should have expired long ago.
    fn late_expiry(&self, bound_ms: u64) -> Option<(String, PaymentId)> {
        self.payments.values().map(|known| &known.payment).find_map(|payment| {
            let over_ms = self.final_time.since(payment.expires_at + payment.grace).as_millis();
            let waits = payment.state == State::Pending && payment.claim.is_none() && !payment.is_invoice;
            let text = || format!("{} is pending, and its time has been over for {over_ms} ms", payment.id);
            (waits && over_ms > u128::from(bound_ms)).then(|| (text(), payment.id))
        })
    }

    /// Returns a payment whose money has been irreversible for longer and which is not completed.
    fn late_completion(&self, bound_ms: u64) -> Option<(String, PaymentId)> {
        self.payments.values().find_map(|known| {
            let payment = &*known.payment;
            if payment.state != State::Pending || payment.cancellation.is_some() || payment.claim.is_some() {
                return None;
            }
            let keys = self.final_by_session.get(&payment.id)?;
            let blocks = keys.iter().filter_map(|key| self.final_transfers.get(key)).map(|t| t.position.block_num);
            let final_ms = blocks.filter_map(|number| self.finalized_ms.get(&number)).max()?;
            let waited_ms = self.now_ms.saturating_sub((*final_ms).max(known.stored_ms));
            let is_paid = || self.paid_in_time(payment) >= payment.amount.units;
            let text = || format!("{} is paid and has been pending for {waited_ms} ms", payment.id);
            (waited_ms > bound_ms && is_paid()).then(|| (text(), payment.id))
        })
    }

    /// Returns a payment whose claim is still open though its transaction has been irreversible for longer.
    fn late_claim(&self, bound_ms: u64) -> Option<(String, PaymentId)> {
        self.payments.values().map(|known| &known.payment).find_map(|payment| {
            let claim = payment.claim.as_ref().filter(|_| payment.state == State::Processing)?;
            let place = self.final_transfers.iter().find(|((tx_id, _), _)| *tx_id == claim.tx_id);
            let final_ms = place.and_then(|(_, transfer)| self.finalized_ms.get(&transfer.position.block_num))?;
            let waited_ms = self.now_ms.saturating_sub(*final_ms);
            let text = || format!("{} is settled and has been processing for {waited_ms} ms", payment.id);
            (waited_ms > bound_ms).then(|| (text(), payment.id))
        })
    }
}
