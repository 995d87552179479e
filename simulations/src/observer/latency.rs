//! Bounds of latency in simulations without faults that explain more.

use super::*;

/// Maximum latency of an event to a healthy endpoint, milliseconds.
const WEBHOOK_MS: u64 = 5_000;
/// Maximum latency of the response to an agent after the settlement, milliseconds.
const AGENT_MS: u64 = 1_000;
/// How often an engine reads what other engines have changed, milliseconds.
const CHANGES_INTERVAL_MS: u64 = 1_000;

/// When awaited things happened, virtual milliseconds.
#[derive(Default)]
pub struct Latency {
    /// When the last attempt of a payment's events was recorded: they go out one after the other.
    attempted_ms: BTreeMap<PaymentId, u64>,
    /// When payments were written last.
    written_ms: BTreeMap<PaymentId, u64>,
    /// When claims were released.
    let_go_ms: BTreeMap<TxId, u64>,
}

impl Latency {
    /// Records that a claim was released.
    pub fn claim_released(&mut self, tx_id: TxId, now_ms: u64) {
        self.let_go_ms.insert(tx_id, now_ms);
    }

    /// Records a recorded attempt.
    pub fn attempted(&mut self, payment: PaymentId, now_ms: u64) {
        self.attempted_ms.insert(payment, now_ms);
    }
}

impl Latency {
    /// Returns when a payment was written last.
    pub(crate) fn written_at(&self, payment: PaymentId) -> Option<u64> {
        self.written_ms.get(&payment).copied()
    }
}

impl Observer {
    /// Measures the latency of a transfer from its block to its session.
    pub(super) fn sighted(&mut self, after: &Payment, written: &[Credit], replaced: &[Credit]) {
        self.latency.written_ms.insert(after.id, self.now_ms);
        let Some(bound_ms) = self.prompt_ms else { return };
        let stored_ms = self.payments.get(&after.id).map_or(self.now_ms, |known| known.stored_ms);
        for credit in written {
            let is_new = !replaced.iter().any(|one| (one.tx_id, one.op_in_tx) == (credit.tx_id, credit.op_in_tx));
            let is_wallets = !self.claims.contains_key(&credit.tx_id)
                && !self.assignments.contains_key(&(credit.tx_id, credit.op_in_tx));
            let Some(block) = credit.block.filter(|_| is_new && is_wallets) else { continue };
            let made_ms = block.time.millis().saturating_sub(crate::options::EPOCH_SECONDS * 1_000).max(stored_ms);
            let took_ms = self.now_ms.saturating_sub(made_ms);
            if took_ms > bound_ms && !self.is_affected_by_damage(after) && !self.other_engine.contains(&after.id) {
                let text = format!("{} was recorded {took_ms} ms after its block", credit.tx_id);
                self.violate("transfers-are-sighted-promptly", text, Some(after.id));
            } else {
                self.passes("transfers-are-sighted-promptly");
            }
        }
    }

    /// Measures the latency of an event to its endpoint.
    pub(super) fn posted(&mut self, delivery: DeliveryId, attempt: u32) {
        let Some(delivery_state) = self.deliveries.get(&delivery).filter(|_| self.prompt_ms.is_some() && attempt == 1)
        else {
            return;
        };
        if !self.payments.contains_key(&delivery_state.payment) {
            return;
        }
        let endpoint_set_ms = self.endpoint_set_ms.get(&delivery_state.endpoint).copied().unwrap_or(0);
        let attempted_ms = self.latency.attempted_ms.get(&delivery_state.payment).copied().unwrap_or(0);
        let since_ms = delivery_state.scheduled_ms.max(endpoint_set_ms).max(attempted_ms);
        let (took_ms, payment) = (self.now_ms.saturating_sub(since_ms), delivery_state.payment);
        if took_ms > WEBHOOK_MS && !self.was_damaged {
            self.violate("webhooks-go-out-at-once", format!("{delivery} is sent after {took_ms} ms"), Some(payment));
        } else {
            self.passes("webhooks-go-out-at-once");
        }
    }

    /// Measures how long an agent that began to wait at `begun_ms` waited for the outcome of its payment: that it is
    /// settled, or that its claim was released.
    pub fn settlement_responded(&mut self, payment: PaymentId, tx_id: TxId, is_settled: bool, begun_ms: u64) {
        let decided_ms = if is_settled {
            self.latency.written_ms.get(&payment).copied()
        } else {
            // An earlier refusal was found by a new request to the nodes.
            self.latency.let_go_ms.get(&tx_id).copied().filter(|let_go_ms| *let_go_ms > begun_ms)
        };
        let Some(decided_ms) = decided_ms.filter(|_| self.prompt_ms.is_some()) else { return };
        let took_ms = self.now_ms.saturating_sub(decided_ms.max(begun_ms));
        // The agent may wait at another engine than the one that decides.
        let bound_ms = AGENT_MS + if self.has_several_engines { CHANGES_INTERVAL_MS } else { 0 };
        if took_ms > bound_ms && !self.was_damaged {
            self.violate(
                "agents-hear-at-once",
                format!("an agent gets its response after {took_ms} ms"),
                Some(payment),
            );
        } else {
            self.passes("agents-hear-at-once");
        }
    }
}
