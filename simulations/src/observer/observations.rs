//! The observations that invariants check: a write, a webhook, a broadcast, a response, the end.

use std::time::Duration;

use engine::{
    payment::{RefundDue, RefundPlan},
    webhook::{DisableReason, EndpointHealth, Trigger},
};

use super::*;

/// A durable payment.
#[derive(Clone)]
pub struct Known {
    /// The snapshot.
    pub payment: Arc<Payment>,
    /// Its number in the script, once its creator knows it.
    pub session: Option<u32>,
    /// When it was first durable, virtual milliseconds.
    pub stored_ms: u64,
    /// Whether its creation was acknowledged.
    pub is_acknowledged: bool,
    /// Whether a cancellation was acknowledged.
    pub is_cancel_acknowledged: bool,
}

/// A durable delivery.
#[derive(Debug, Clone)]
pub struct DeliveryState {
    /// The event.
    pub event: EventId,
    /// Its payment.
    pub payment: PaymentId,
    /// The endpoint.
    pub endpoint: EndpointId,
    /// Attempts so far.
    pub attempts: u32,
    /// Attempts before its schedule began anew.
    pub schedule_from: u32,
    /// Whether a redelivery of the event was requested.
    pub is_manual: bool,
    /// Whether it has one attempt only: a redelivery or a test.
    pub is_once: bool,
    /// When the next is due; none once it has left the outbox.
    pub due_at: Option<Timestamp>,
    /// When that was decided, virtual milliseconds.
    pub scheduled_ms: u64,
    /// Whether it was delivered.
    pub is_delivered: bool,
}

/// A payment being written.
pub struct PaymentWrite<'a> {
    /// The durable snapshot before.
    pub before: Option<&'a Payment>,
    /// The snapshot now durable.
    pub after: &'a Payment,
    /// The event of the same batch.
    pub event: Option<&'a EventRecord>,
    /// The event of the same batch that announces new exceptions.
    pub exception: Option<&'a EventRecord>,
    /// The event of the same batch that announces a refund.
    pub refund: Option<&'a EventRecord>,
    /// The claim of the same batch.
    pub claim: Option<&'a ClaimRecord>,
    /// All transfers of the payment, those of the same batch included, as the store keeps them.
    pub rows: &'a Rows,
    /// The transfers of the same batch.
    pub written: &'a [Credit],
    /// What they were before; new ones are left out.
    pub replaced: &'a [Credit],
    /// Everything else.
    pub observer: &'a Observer,
}

/// The transfers of a payment, by transaction and operation.
pub type Rows = BTreeMap<(TxId, u32), Credit>;

/// The cursor being moved.
pub struct CursorWrite<'a> {
    /// From where.
    pub from: Cursor,
    /// To where.
    pub to: Cursor,
    /// Everything else, the batch's unmatched transfers included.
    pub observer: &'a Observer,
}

/// The reconciliation of a day, being written.
pub struct ReconciliationWrite<'a> {
    /// The day.
    pub day: &'a Day,
    /// Everything else; of this day perhaps an earlier reconciliation.
    pub observer: &'a Observer,
}

/// A webhook being received.
pub struct ReceivedWebhook<'a> {
    /// Header names and values.
    pub headers: &'a [(String, String)],
    /// The body.
    pub body: &'a [u8],
    /// The delivery its header names.
    pub delivery: DeliveryId,
    /// The attempt its header names.
    pub attempt: u32,
    /// The event its header names.
    pub event: EventId,
    /// The payment of the body; none in tests and in events of no payment.
    pub payment: Option<PaymentId>,
    /// The status of the body.
    pub status: String,
    /// The sequence of the body.
    pub sequence: u32,
    /// The merchant's time.
    pub now: Timestamp,
    /// Everything else.
    pub observer: &'a Observer,
}

/// An attempt being recorded.
pub struct Attempted<'a> {
    /// The delivery as it was durable.
    pub before: &'a DeliveryState,
    /// What is recorded.
    pub attempt: &'a Attempt,
    /// Everything else.
    pub observer: &'a Observer,
}

/// A broadcast of a transaction by the engine.
pub struct Broadcast<'a> {
    /// Which.
    pub tx_id: TxId,
    /// Everything else.
    pub observer: &'a Observer,
}

/// A response that reached its caller.
#[derive(Debug)]
pub enum Response<'a> {
    /// A session was created.
    Created(&'a Payment),
    /// A session was cancelled.
    Cancelled(&'a Payment),
    /// An agent's payment of a session was settled.
    Settled {
        /// The session.
        payment: PaymentId,
        /// The response to the agent.
        settled: &'a actors::Settled,
    },
    /// A payment for another server was settled.
    Facilitated {
        /// By this transaction.
        tx_id: TxId,
    },
    /// A session was read.
    Read(&'a Payment),
    /// A merchant's resolution was accepted.
    Resolved(&'a Payment),
    /// What is owed was computed.
    Owed {
        /// Of this session.
        payment: &'a Payment,
        /// Payees and amounts.
        owed: &'a [RefundDue],
    },
    /// A refund was planned.
    Planned {
        /// Of this session.
        payment: &'a Payment,
        /// What to send.
        plan: &'a RefundPlan,
    },
}

/// The end of a run, when everything should have recovered.
pub struct End<'a> {
    /// Everything.
    pub observer: &'a Observer,
    /// The engine's time.
    pub now: Timestamp,
    /// The block up to which the engine reports to have read.
    pub scanned_num: u32,
    /// Payments with an open claim, according to the store.
    pub in_flight: Vec<PaymentId>,
    /// Payments according to the store.
    pub stored: BTreeMap<PaymentId, Payment>,
    /// Unmatched transfers according to the store.
    pub stored_unmatched: Vec<Unmatched>,
    /// Deliveries in the outbox, according to the store.
    pub outbox: Vec<Delivery>,
}

/// What matches a transfer to the session that its memo names.
pub(super) const BY_MEMO: &str = "memo";

/// Returns whether an account is or was a merchant's, and proven.
pub(super) fn has_proven(merchant: &Merchant, account: &AccountName) -> bool {
    let ownership = &merchant.ownership;
    (merchant.hive_account == *account && ownership.proof.is_some())
        || ownership.former.iter().any(|former| former.account == *account)
}

/// How often a payment was shown.
#[derive(Debug, Clone, Copy, Default)]
pub struct Presentations {
    /// Requests for its settlement that were begun.
    pub begun: u32,
    /// Whether one of them is known to have made it.
    pub is_made: bool,
}

/// The expected health of an endpoint by its attempts since it was set or enabled.
#[derive(Debug, Clone, Default)]
pub struct EndpointSeen {
    /// Whether it responded with 410 Gone, or failed for so long that it may be disabled.
    pub may_be_disabled: bool,
    /// The first failure since the last success.
    failing_since: Option<Timestamp>,
    /// Since when its circuit breaker must be open.
    pub breaker_open_since: Option<Timestamp>,
    /// Its expected health.
    pub known: EndpointHealth,
}

impl EndpointSeen {
    /// How long an endpoint must fail before it is disabled.
    const DISABLED_AFTER: Duration = Duration::from_secs(5 * 86_400);

    /// Consecutive transport failures after which a single response does not reset the count.
    const BREAKER_OPENS_AFTER: u32 = 10;
    /// How often it must fail before it is disabled, and the minimum distance of the failed events.
    const DISABLED_ATTEMPTS: u32 = 20;
    const DISABLED_SPREAD: Duration = Duration::from_secs(12 * 3_600);

    /// Records what an attempt shows of the endpoint.
    fn learn(&mut self, delivery: &Delivery, attempt: &Attempt) {
        let (known, at) = (&mut self.known, attempt.ended_at);
        match attempt.outcome {
            Outcome::Accepted { .. } => {
                let disabled = known.disabled;
                *known = EndpointHealth {
                    disabled,
                    last_success_at: Some(at),
                    last_failure_at: known.last_failure_at,
                    ..EndpointHealth::default()
                };
                return;
            }
            Outcome::Refused { .. } if known.transport_failures >= Self::BREAKER_OPENS_AFTER => {}
            Outcome::Refused { .. } => known.transport_failures = 0,
            _ => known.transport_failures += 1,
        }
        known.last_failure_at = Some(at);
        if delivery.trigger == Trigger::Auto {
            let since = *known.failing_since.get_or_insert(at);
            known.failed_attempts += 1;
            let happened_at = delivery.event.created_at();
            let (first, last) = known.failed_events.unwrap_or((happened_at, happened_at));
            let (first, last) = (first.min(happened_at), last.max(happened_at));
            known.failed_events = Some((first, last));
            let has_failed_for_days = at.since(since) >= Self::DISABLED_AFTER;
            let is_spread = last.since(first) >= Self::DISABLED_SPREAD;
            if has_failed_for_days && is_spread && known.failed_attempts >= Self::DISABLED_ATTEMPTS {
                known.disabled.get_or_insert((DisableReason::Failing, at));
            }
        }
        if attempt.outcome.status() == Some(410) {
            known.disabled.get_or_insert((DisableReason::Gone, at));
        }
    }

    /// Records an attempt.
    pub fn note(&mut self, delivery: &Delivery, attempt: &Attempt) {
        self.learn(delivery, attempt);
        let is_open = self.known.transport_failures >= Self::BREAKER_OPENS_AFTER;
        self.breaker_open_since = is_open.then(|| self.breaker_open_since.unwrap_or(attempt.ended_at));
        if attempt.outcome.is_success() {
            self.failing_since = None;
            return;
        }
        let since = *self.failing_since.get_or_insert(attempt.ended_at);
        let is_gone = matches!(attempt.outcome, Outcome::Refused { status: 410, .. });
        self.may_be_disabled |= is_gone || attempt.ended_at.since(since) >= Self::DISABLED_AFTER;
    }
}

/// The request that got a success: the resource, the seller and its idempotency key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sold {
    pub(crate) resource: String,
    pub(crate) seller: Option<MerchantId>,
    pub(crate) key: Option<u32>,
}
