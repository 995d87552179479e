//! Webhook deliveries: attempts, outcomes and the retry schedule.

use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::{
    ids::{DeliveryId, EndpointId, EventId, MerchantId, PaymentId},
    mutant,
    time::Timestamp,
};

/// Delays before each attempt: 10 attempts over 75 h 35 m 5 s (Standard Webhooks).
pub const SCHEDULE: [Duration; 10] = [
    Duration::ZERO,
    Duration::from_secs(5),
    Duration::from_secs(5 * 60),
    Duration::from_secs(30 * 60),
    Duration::from_secs(2 * 3_600),
    Duration::from_secs(5 * 3_600),
    Duration::from_secs(10 * 3_600),
    Duration::from_secs(14 * 3_600),
    Duration::from_secs(20 * 3_600),
    Duration::from_secs(24 * 3_600),
];

/// Minimum delay after a timeout or a 429 response.
const OVERLOAD_WAIT: Duration = Duration::from_secs(60);

/// The trigger of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// The event occurred; retried on the schedule.
    Auto,
    /// Redelivery requested by the merchant; sent once.
    Manual,
    /// Test requested by the merchant; sent once.
    Test,
}

impl Trigger {
    /// Every trigger, in a fixed order.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Manual, Self::Test];

    /// Returns the name in the delivery log.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Manual => "manual",
            Self::Test => "test",
        }
    }
}

/// The state of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryState {
    /// In the outbox, waiting for the next attempt.
    Pending,
    /// Stored and not sent, because its endpoint is not enabled. Can be replayed.
    Held,
    /// Delivered.
    Delivered,
    /// The schedule is exhausted, or the endpoint was deleted. Can be replayed while the endpoint exists.
    Failed,
}

impl DeliveryState {
    /// Every state, in a fixed order.
    pub const ALL: [Self; 4] = [Self::Pending, Self::Held, Self::Delivered, Self::Failed];

    /// Returns the name in the delivery log.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Held => "held",
            Self::Delivered => "delivered",
            Self::Failed => "failed",
        }
    }
}

/// The record of a delivery in the delivery log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryRecord {
    /// The delivery; unless it is pending, `due_at` is the time it was last due.
    pub delivery: Delivery,
    /// Where it stands.
    pub state: DeliveryState,
    /// The outcome and the end of the last attempt.
    pub last: Option<(Outcome, Timestamp)>,
}

impl DeliveryRecord {
    /// Returns the record of a new delivery.
    #[must_use]
    pub const fn new(delivery: Delivery) -> Self {
        Self { delivery, state: DeliveryState::Pending, last: None }
    }

    /// Returns the record after an attempt.
    #[must_use]
    pub fn after(&self, attempt: &Attempt) -> Self {
        let mut next = self.clone();
        next.delivery.attempts += 1;
        next.last = Some((attempt.outcome, attempt.ended_at));
        next.state = match (attempt.next_attempt_at, attempt.outcome) {
            (Some(due_at), _) => {
                next.delivery.due_at = due_at;
                DeliveryState::Pending
            }
            (None, outcome) if outcome.is_success() => DeliveryState::Delivered,
            (None, Outcome::Refused { status: 410, .. }) if self.delivery.trigger == Trigger::Auto => {
                DeliveryState::Held
            }
            (None, _) => DeliveryState::Failed,
        };
        next
    }

    /// Returns whether it can be replayed: triggered automatically, not pending and not delivered.
    #[must_use]
    pub fn is_replayable(&self) -> bool {
        let is_taken = self.state == DeliveryState::Delivered && !mutant!("replay-includes-delivered");
        self.delivery.trigger == Trigger::Auto && self.state != DeliveryState::Pending && !is_taken
    }

    /// Returns whether it is pending and unchanged since `seen` was read.
    #[must_use]
    pub fn is_unattempted_since(&self, seen: &Delivery) -> bool {
        self.state == DeliveryState::Pending
            && (self.delivery.event, self.delivery.attempts) == (seen.event, seen.attempts)
            && self.delivery.due_at == seen.due_at
    }

    /// Returns whether it can be replayed and has not been attempted since `seen` was read.
    #[must_use]
    pub fn is_replayable_since(&self, seen: &Delivery) -> bool {
        self.is_replayable() && self.delivery.attempts == seen.attempts
    }

    /// Returns the record in state `Held`.
    #[must_use]
    pub fn held(self) -> Self {
        Self { state: DeliveryState::Held, ..self }
    }

    /// Returns the record in state `Failed`, because its event or its endpoint no longer exists.
    #[must_use]
    pub fn given_up(self) -> Self {
        Self { state: DeliveryState::Failed, ..self }
    }

    /// Returns the record at the start of a new schedule.
    #[must_use]
    pub fn replayed(&self, due_at: Timestamp) -> Self {
        let from =
            if mutant!("replay-continues-schedule") { self.delivery.schedule_from } else { self.delivery.attempts };
        let delivery = Delivery { schedule_from: from, due_at, ..self.delivery.clone() };
        Self { delivery, state: DeliveryState::Pending, ..self.clone() }
    }
}

/// A delivery of an event to a merchant's endpoint. It stays in the outbox until it is delivered or has failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The id of the delivery.
    pub id: DeliveryId,
    /// The event; the same for every attempt.
    pub event: EventId,
    /// The sequence number of the event in the merchant's event list.
    pub event_seq: u64,
    /// The merchant.
    pub merchant: MerchantId,
    /// The endpoint.
    pub endpoint: EndpointId,
    /// The payment of the event.
    pub payment: PaymentId,
    /// The trigger.
    pub trigger: Trigger,
    /// Attempts made so far.
    pub attempts: u32,
    /// The number of attempts before the current schedule started.
    pub schedule_from: u32,
    /// When the next attempt is due.
    pub due_at: Timestamp,
}

/// The outcome of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// A 2xx response.
    Accepted {
        /// The HTTP status.
        status: u16,
    },
    /// Any other response; redirects are not followed.
    Refused {
        /// The HTTP status.
        status: u16,
        /// The `Retry-After` of the response.
        retry_after: Option<Duration>,
    },
    /// No complete response in time.
    Timeout,
    /// The connection was refused.
    ConnectionRefused,
    /// The connection was closed before a complete response.
    ConnectionReset,
    /// No connection for another reason, such as no route to the host.
    Connect,
    /// The TLS handshake failed.
    Tls,
    /// DNS resolution failed.
    Dns,
    /// The IP address is blocked.
    Blocked,
}

impl Outcome {
    /// Returns whether the event was delivered.
    #[must_use]
    pub const fn is_success(self) -> bool {
        matches!(self, Self::Accepted { .. })
    }

    /// Returns the name in the delivery log.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Accepted { .. } => "success",
            Self::Refused { .. } => "http_error",
            Self::Timeout => "timeout",
            Self::ConnectionRefused => "refused",
            Self::ConnectionReset => "reset",
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::Dns => "dns",
            Self::Blocked => "blocked",
        }
    }

    /// Returns the HTTP status of the response, if any.
    #[must_use]
    pub const fn status(self) -> Option<u16> {
        match self {
            Self::Accepted { status } | Self::Refused { status, .. } => Some(status),
            _ => None,
        }
    }
}

/// The record of an attempt in the delivery log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The delivery.
    pub delivery: DeliveryId,
    /// The event.
    pub event: EventId,
    /// The merchant.
    pub merchant: MerchantId,
    /// The number of the attempt, from 1.
    pub number: u32,
    /// The trigger.
    pub trigger: Trigger,
    /// Host and path of the endpoint, without the query.
    pub endpoint: String,
    /// When it was due.
    pub scheduled_at: Timestamp,
    /// When the request was sent, by the wall clock used for the signature.
    pub started_at: Timestamp,
    /// When it ended, by the engine's clock used for the schedule.
    pub ended_at: Timestamp,
    /// The duration, milliseconds.
    pub duration_ms: u64,
    /// The outcome.
    pub outcome: Outcome,
    /// The request headers without signatures. Empty after the retention period.
    pub request_headers: Vec<(String, String)>,
    /// The start of the response body, at most 1 KiB. Empty after the retention period.
    pub response_snippet: String,
    /// When the next attempt is due, if any.
    pub next_attempt_at: Option<Timestamp>,
    /// SHA-256 of the body that was sent.
    pub body_sha256: [u8; 32],
}

impl Attempt {
    /// Returns the attempt without headers and response body, as kept after the retention period.
    #[must_use]
    pub fn pruned(self) -> Self {
        Self { response_snippet: String::new(), request_headers: Vec::new(), ..self }
    }
}

/// Returns the SHA-256 of a body for the delivery log.
#[must_use]
pub fn body_digest(body: &[u8]) -> [u8; 32] {
    Sha256::digest(body).into()
}

/// The decision after an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryDecision {
    /// Delivered.
    Delivered,
    /// Retry at this time.
    RetryAt(Timestamp),
    /// The schedule is exhausted.
    GiveUp,
    /// The receiver responded 410 Gone: disable the endpoint.
    DisableEndpoint,
}

impl Delivery {
    /// Returns the decision after an attempt that ended at `now`. `random` adds a jitter of ±20 %, so that deliveries
    /// that failed together are not retried together.
    #[must_use]
    pub fn after(&self, outcome: Outcome, now: Timestamp, random: u16) -> RetryDecision {
        let retry_after = match outcome {
            Outcome::Accepted { .. } => return RetryDecision::Delivered,
            Outcome::Refused { status: 410, .. } => return RetryDecision::DisableEndpoint,
            Outcome::Refused { retry_after, .. } => retry_after,
            Outcome::Timeout if mutant!("timeout-is-success") => return RetryDecision::Delivered,
            _ => None,
        };
        if mutant!("gives-up-after-four") && self.attempts >= 3 {
            return RetryDecision::GiveUp;
        }
        if self.trigger != Trigger::Auto && !mutant!("redelivery-is-retried") {
            return RetryDecision::GiveUp;
        }
        let made = self.attempts.saturating_sub(self.schedule_from);
        let Some(&base) = SCHEDULE.get(made as usize + 1) else { return RetryDecision::GiveUp };
        let overloaded = matches!(outcome, Outcome::Timeout | Outcome::Refused { status: 429, .. });
        let least = if overloaded { OVERLOAD_WAIT } else { Duration::ZERO };
        let base = base.max(least);
        let wait = match retry_after {
            Some(asked) => asked.clamp(base, base * 2),
            None => jittered(base, random).max(least),
        };
        RetryDecision::RetryAt(now + wait)
    }
}

/// Scales a delay by 0.8 to 1.2.
fn jittered(base: Duration, random: u16) -> Duration {
    base * (800 + u32::from(random) % 401) / 1_000
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivery(attempts: u32) -> Delivery {
        Delivery {
            id: DeliveryId::from_bits(1),
            event: EventId::from_bits(2),
            event_seq: 3,
            merchant: MerchantId::from_bits(4),
            endpoint: EndpointId::from_bits(4),
            payment: PaymentId::from_bits(5),
            trigger: Trigger::Auto,
            attempts,
            schedule_from: 0,
            due_at: Timestamp::EPOCH,
        }
    }

    const FAILED: Outcome = Outcome::Refused { status: 500, retry_after: None };
    const MIDDLE: u16 = 200;

    #[test]
    fn ten_attempts_span_three_days() {
        let total: Duration = SCHEDULE.iter().sum();
        assert_eq!(total.as_secs(), 75 * 3_600 + 35 * 60 + 5);
        for (attempts, wait) in SCHEDULE.iter().skip(1).enumerate() {
            let next = delivery(u32::try_from(attempts).unwrap()).after(FAILED, Timestamp::EPOCH, MIDDLE);
            assert_eq!(next, RetryDecision::RetryAt(Timestamp::EPOCH + *wait));
        }
        assert_eq!(delivery(9).after(FAILED, Timestamp::EPOCH, MIDDLE), RetryDecision::GiveUp);
    }

    #[test]
    fn jitter_stays_within_a_fifth() {
        let waits: Vec<_> = [0, 400, 401].map(|random| jittered(Duration::from_secs(100), random).as_secs()).into();
        assert_eq!(waits, [80, 120, 80]);
    }

    #[test]
    fn an_overloaded_receiver_is_retried_after_at_least_a_minute() {
        for outcome in [Outcome::Timeout, Outcome::Refused { status: 429, retry_after: None }] {
            for (random, waited) in [(0, 60), (MIDDLE, 60), (400, 72)] {
                assert_eq!(
                    delivery(0).after(outcome, Timestamp::EPOCH, random),
                    RetryDecision::RetryAt(Timestamp::from_seconds(waited))
                );
            }
        }
    }

    #[test]
    fn redeliveries_and_tests_are_sent_once() {
        for trigger in [Trigger::Manual, Trigger::Test] {
            let delivery = Delivery { trigger, ..delivery(0) };
            assert_eq!(delivery.after(FAILED, Timestamp::EPOCH, MIDDLE), RetryDecision::GiveUp);
            assert_eq!(
                delivery.after(Outcome::Accepted { status: 200 }, Timestamp::EPOCH, 0),
                RetryDecision::Delivered
            );
        }
    }

    #[test]
    fn a_replayed_delivery_restarts_its_schedule_and_keeps_its_attempt_count() {
        let failed = DeliveryRecord { state: DeliveryState::Failed, ..DeliveryRecord::new(delivery(10)) };
        let replayed = failed.replayed(Timestamp::from_seconds(7));
        assert_eq!((replayed.state, replayed.delivery.attempts), (DeliveryState::Pending, 10));
        let next = replayed.delivery.after(FAILED, Timestamp::EPOCH, MIDDLE);
        assert_eq!(next, RetryDecision::RetryAt(Timestamp::from_seconds(5)));
        assert!(failed.is_replayable() && !replayed.is_replayable());
    }

    #[test]
    fn retry_after_is_clamped_between_the_delay_and_twice_the_delay() {
        let asked = |seconds| Outcome::Refused { status: 503, retry_after: Some(Duration::from_secs(seconds)) };
        for (seconds, waited) in [(1, 300), (400, 400), (9_999, 600)] {
            assert_eq!(
                delivery(1).after(asked(seconds), Timestamp::EPOCH, 0),
                RetryDecision::RetryAt(Timestamp::from_seconds(waited))
            );
        }
    }

    #[test]
    fn success_completes_a_delivery_and_gone_disables_the_endpoint() {
        assert_eq!(delivery(3).after(Outcome::Accepted { status: 204 }, Timestamp::EPOCH, 0), RetryDecision::Delivered);
        let gone = Outcome::Refused { status: 410, retry_after: None };
        assert_eq!(delivery(0).after(gone, Timestamp::EPOCH, 0), RetryDecision::DisableEndpoint);
        assert_eq!(
            delivery(0).after(Outcome::Blocked, Timestamp::EPOCH, MIDDLE),
            RetryDecision::RetryAt(Timestamp::from_seconds(5))
        );
    }
}
