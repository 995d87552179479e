//! Claims and their outcomes, and the broadcasts for them.

use engine::payment::ClaimFinality;

use super::*;

/// How soon a transaction may be sent to a node again, milliseconds.
const LEAST_PAUSE_MS: u64 = 400;
/// The same for a session's transaction that a majority of the nodes has accepted, if no node is slow.
const LEAST_PAUSE_ONCE_ACCEPTED_MS: u64 = 14_000;
/// How long a claimed transaction may go without being sent, milliseconds: nodes may be slow, and in backoff.
const LONGEST_PAUSE_MS: u64 = 60_000;
/// How long after its expiration a transaction may still be sent, milliseconds: the engine's time is that of a block.
const LATE_MS: u64 = 1_000;

/// What the engine sent to nodes, and what it received from them. Times are virtual milliseconds.
#[derive(Default)]
pub struct Broadcasts {
    /// Claims whose outcome may be open.
    open: BTreeSet<TxId>,
    /// When each transaction was last sent to each node.
    sent_ms: BTreeMap<TxId, BTreeMap<usize, u64>>,
    /// When the engine first received, or missed, the response of a node that has the transaction.
    taken_ms: BTreeMap<TxId, u64>,
    /// The nodes whose acceptance the engine has received.
    accepted_by: BTreeMap<TxId, BTreeSet<usize>>,
    /// When these were a majority.
    accepted_ms: BTreeMap<TxId, u64>,
    /// When each transaction was first in a block.
    included_ms: BTreeMap<TxId, u64>,
}

impl Broadcasts {
    /// Returns when a transaction was last sent to any node.
    fn last_sent_ms(&self, tx_id: TxId) -> Option<u64> {
        self.sent_ms.get(&tx_id)?.values().max().copied()
    }

    /// Records that a block holds transactions.
    pub fn included(&mut self, tx_ids: &[TxId], now_ms: u64) {
        for tx_id in tx_ids {
            self.included_ms.entry(*tx_id).or_insert(now_ms);
        }
    }
}

/// What the claim of a transaction requires.
struct OpenClaim {
    payment: Option<PaymentId>,
    finality: ClaimFinality,
    expiration: Timestamp,
}

impl Observer {
    pub(super) fn claim_written(&mut self, claimed: &ClaimRecord) {
        let name = (claimed.pay_to, claimed.nonce.clone());
        let (earlier, by_nonce) = (self.claims.get(&claimed.tx_id), self.nonces.get(&name));
        if earlier.is_some() || by_nonce.is_some() {
            let text = format!("{} or its nonce {:?} was claimed before", claimed.tx_id, claimed.nonce);
            self.violate("claimed-once", text, session_of(claimed));
        }
        self.forgotten.shift_remove(&claimed.tx_id);
        // A restored store does not know what was sent before.
        self.broadcasts.taken_ms.remove(&claimed.tx_id);
        self.broadcasts.open.insert(claimed.tx_id);
        self.claims.insert(claimed.tx_id, claimed.clone());
        for op_in_tx in self.final_ops.get(&claimed.tx_id).cloned().unwrap_or_default() {
            self.final_has_target((claimed.tx_id, op_in_tx));
        }
        self.nonces.insert(name, claimed.tx_id);
    }

    /// Records the settlement outcome of a claim.
    pub(super) fn settlement_written(&mut self, tx_id: TxId, outcome: &ClaimOutcome) {
        self.marks.push(match outcome {
            ClaimOutcome::Open => "a claim is open again",
            ClaimOutcome::Shared => "a claim is shared",
            ClaimOutcome::Settled { .. } => "a claim is settled",
            ClaimOutcome::Refused { .. } => "a claim is refused",
            ClaimOutcome::Expired => "a claim expires",
        });
        if let Some(claimed) = self.claims.get_mut(&tx_id) {
            claimed.outcome = outcome.clone();
        }
        if matches!(outcome, ClaimOutcome::Refused { .. }) {
            self.check_refusal(tx_id);
        }
    }

    /// Checks that no node is known to have a transaction whose claim is refused.
    fn check_refusal(&mut self, tx_id: TxId) {
        let taken_ms = self.broadcasts.taken_ms.get(&tx_id);
        // A response after a majority has refused is too late.
        if let Some(taken_ms) =
            taken_ms.filter(|at| self.broadcasts.last_sent_ms(tx_id).is_some_and(|sent| **at < sent))
        {
            let text = format!("the claim on {tx_id} is refused, and a node accepted it at {taken_ms} ms");
            let payment = self.claims.get(&tx_id).and_then(session_of);
            self.violate("refused-only-if-never-taken", text, payment);
        } else {
            self.passes("refused-only-if-never-taken");
        }
    }

    /// Returns what an open claim requires.
    fn open_claim(&self, tx_id: TxId) -> Option<OpenClaim> {
        let claimed = self.claims.get(&tx_id).filter(|claimed| claimed.outcome == ClaimOutcome::Open)?;
        match &claimed.purpose {
            Purpose::Facilitated(facilitation) => {
                let (finality, expiration) = (facilitation.finality, facilitation.expiration);
                Some(OpenClaim { payment: None, finality, expiration })
            }
            Purpose::Session(id) => {
                let claim = self.payments.get(id)?.payment.claim.as_ref().filter(|claim| claim.tx_id == tx_id)?;
                Some(OpenClaim { payment: Some(*id), finality: claim.finality, expiration: claim.expiration })
            }
        }
    }

    /// Checks, without faults, that open claims are followed, and decided once their evidence exists.
    pub fn check_open_claims(&mut self) {
        let Some(prompt_ms) = self.prompt_ms.filter(|_| !self.has_several_engines && !self.was_damaged) else { return };
        for tx_id in self.broadcasts.open.clone() {
            let Some(claim) = self.open_claim(tx_id) else {
                self.broadcasts.open.remove(&tx_id);
                continue;
            };
            let is_decided = claim
                .payment
                .is_some_and(|id| self.payments.get(&id).is_some_and(|known| known.payment.state.is_terminal()));
            let evidence_ms = match claim.finality {
                ClaimFinality::Accepted => self.broadcasts.accepted_ms.get(&tx_id),
                // A fork may remove the block.
                ClaimFinality::InBlock => self.broadcasts.included_ms.get(&tx_id).filter(|_| self.has_one_chain),
                ClaimFinality::Irreversible => None,
            };
            let late_ms = evidence_ms.map_or(0, |at| self.now_ms.saturating_sub(*at));
            let is_late = late_ms > prompt_ms && !is_decided;
            let paused_ms = self.broadcasts.last_sent_ms(tx_id).map_or(0, |at| self.now_ms.saturating_sub(at));
            let is_left = paused_ms > LONGEST_PAUSE_MS && self.true_time() < claim.expiration;
            if is_late {
                let text = format!("{tx_id} is accepted as required since {late_ms} ms, and its claim is open");
                self.violate("claims-are-pursued", text, claim.payment);
            } else if is_left {
                let text = format!("{tx_id} was not sent for {paused_ms} ms, and its claim is open");
                self.violate("claims-are-pursued", text, claim.payment);
            } else {
                self.passes("claims-are-pursued");
            }
        }
    }

    /// Records that the engine sends a transaction to a node.
    pub fn transaction_sent(&mut self, tx_id: TxId, node: usize) {
        let payment = self.claims.get(&tx_id).and_then(session_of);
        self.ask(payment, |observer, check| match check {
            Check::Broadcast(check) => Some(check(&Broadcast { tx_id, observer })),
            _ => None,
        });
        if self.prompt_ms.is_some() && !self.has_several_engines {
            self.check_broadcast_rate(tx_id, node, payment);
        }
        self.broadcasts.sent_ms.entry(tx_id).or_default().insert(node, self.now_ms);
    }

    /// Checks that a transaction is sent to a node neither too often nor too late.
    fn check_broadcast_rate(&mut self, tx_id: TxId, node: usize, payment: Option<PaymentId>) {
        let expiration = self.open_claim(tx_id).map(|claim| claim.expiration);
        if expiration.is_some_and(|until| self.true_time() > until + Duration::from_millis(LATE_MS)) {
            let text = format!("{tx_id} is sent to node {node} after its expiration");
            return self.violate("nodes-are-spared", text, payment);
        }
        let before_ms = self.broadcasts.sent_ms.get(&tx_id).and_then(|sent| sent.get(&node)).copied();
        let is_accepted =
            before_ms.is_some_and(|at| self.broadcasts.accepted_ms.get(&tx_id).is_some_and(|ms| *ms <= at + 1));
        let least_ms = match is_accepted && self.is_calm && payment.is_some() {
            true => LEAST_PAUSE_ONCE_ACCEPTED_MS,
            false => LEAST_PAUSE_MS,
        };
        match before_ms.map(|at| self.now_ms - at).filter(|pause_ms| *pause_ms < least_ms) {
            Some(pause_ms) => {
                let text = format!("{tx_id} is sent to node {node} again after {pause_ms} ms");
                self.violate("nodes-are-spared", text, payment);
            }
            None => self.passes("nodes-are-spared"),
        }
    }

    /// Records that the engine received the response of a node that has a transaction, or that this response was lost.
    pub fn acceptance_received(&mut self, tx_id: TxId, node: usize, is_lost: bool) {
        self.broadcasts.taken_ms.entry(tx_id).or_insert(self.now_ms);
        if is_lost {
            return;
        }
        let accepted_by = self.broadcasts.accepted_by.entry(tx_id).or_default();
        accepted_by.insert(node);
        if accepted_by.len() > self.nodes / 2 {
            self.broadcasts.accepted_ms.entry(tx_id).or_insert(self.now_ms);
        }
    }

    /// Records a node's response to a broadcast of the engine.
    pub fn node_responded(&mut self, tx_id: TxId, node: usize, is_taken: bool) {
        if is_taken {
            self.ever_accepted.insert(tx_id);
            self.refusals.entry(tx_id).or_default().remove(&node);
        } else {
            self.refusals.entry(tx_id).or_default().insert(node);
        }
    }
}

pub(super) fn session_of(claimed: &ClaimRecord) -> Option<PaymentId> {
    let Purpose::Session(id) = claimed.purpose else { return None };
    Some(id)
}
