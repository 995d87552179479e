//! The life of one delivery: attempts, outcomes, and the time of the next.

use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::{
    ids::{DeliveryId, EventId, MerchantId, PaymentId},
    mutant,
    time::Timestamp,
};

/// How long after the one before it each attempt is made: 10 attempts over 75 h 35 m 5 s (Standard Webhooks).
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

/// The least wait after a receiver said it is overloaded, or did not answer in time.
const OVERLOAD_WAIT: Duration = Duration::from_secs(60);

/// Why an event is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// It happened; it is repeated by the schedule.
    Auto,
    /// Its merchant asked for it once more; it is sent once.
    Manual,
    /// Its merchant tries its endpoint out; it is sent once.
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

/// Where a delivery stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryState {
    /// It waits in the outbox for its next attempt.
    Pending,
    /// It is kept and not sent: its merchant has no endpoint, or one that is disabled. It can be replayed.
    Held,
    /// The receiver has it.
    Delivered,
    /// The schedule is exhausted. It can be replayed.
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

/// A delivery as the log keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryRecord {
    /// The delivery; where it does not wait, `due_at` is when it was last due.
    pub delivery: Delivery,
    /// Where it stands.
    pub state: DeliveryState,
    /// How the last attempt ended, and when.
    pub last: Option<(Outcome, Timestamp)>,
}

impl DeliveryRecord {
    /// Returns a delivery that waits for its first attempt.
    #[must_use]
    pub const fn new(delivery: Delivery) -> Self {
        Self { delivery, state: DeliveryState::Pending, last: None }
    }

    /// Returns it after an attempt.
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

    /// Returns whether it may be replayed: it was to be sent, and was not taken.
    #[must_use]
    pub fn is_replayable(&self) -> bool {
        let is_taken = self.state == DeliveryState::Delivered && !mutant!("replay-takes-the-taken");
        self.delivery.trigger == Trigger::Auto && self.state != DeliveryState::Pending && !is_taken
    }

    /// Returns whether it still waits where it stood when `seen` was read: nobody has attempted, held or given it up
    /// since.
    #[must_use]
    pub fn is_unattempted_since(&self, seen: &Delivery) -> bool {
        self.state == DeliveryState::Pending
            && (self.delivery.event, self.delivery.attempts) == (seen.event, seen.attempts)
            && self.delivery.due_at == seen.due_at
    }

    /// Returns whether it may be replayed and nobody has attempted it since `seen` was read.
    #[must_use]
    pub fn is_replayable_since(&self, seen: &Delivery) -> bool {
        self.is_replayable() && self.delivery.attempts == seen.attempts
    }

    /// Returns it held until it is replayed: its merchant has no endpoint, or one that is disabled.
    #[must_use]
    pub fn held(self) -> Self {
        Self { state: DeliveryState::Held, ..self }
    }

    /// Returns it given up: its event is no longer kept.
    #[must_use]
    pub fn given_up(self) -> Self {
        Self { state: DeliveryState::Failed, ..self }
    }

    /// Returns it at the beginning of a new schedule.
    #[must_use]
    pub fn replayed(&self, due_at: Timestamp) -> Self {
        let from = if mutant!("replay-continues") { self.delivery.schedule_from } else { self.delivery.attempts };
        let delivery = Delivery { schedule_from: from, due_at, ..self.delivery.clone() };
        Self { delivery, state: DeliveryState::Pending, ..self.clone() }
    }
}

/// An event on its way to its merchant's endpoint. It stays in the outbox until it is delivered or given up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// This delivery.
    pub id: DeliveryId,
    /// The event it carries; the same on every attempt.
    pub event: EventId,
    /// The event's place in its merchant's list.
    pub event_seq: u64,
    /// Whose endpoint it goes to.
    pub merchant: MerchantId,
    /// The payment it tells of.
    pub payment: PaymentId,
    /// Why it is sent.
    pub trigger: Trigger,
    /// Attempts made so far.
    pub attempts: u32,
    /// Attempts that were made before its schedule began anew.
    pub schedule_from: u32,
    /// When the next attempt is due.
    pub due_at: Timestamp,
}

/// How one attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The receiver answered 2xx.
    Accepted {
        /// The HTTP status.
        status: u16,
    },
    /// The receiver answered anything else; redirects are never followed.
    Refused {
        /// The HTTP status.
        status: u16,
        /// What `Retry-After` asked for.
        retry_after: Option<Duration>,
    },
    /// No complete answer in time.
    Timeout,
    /// Nobody listens there.
    ConnectionRefused,
    /// The connection broke before a complete answer.
    ConnectionReset,
    /// No connection for another reason, such as no route.
    Connect,
    /// The TLS handshake failed.
    Tls,
    /// The name did not resolve.
    Dns,
    /// The address is one we do not dial.
    Blocked,
}

impl Outcome {
    /// Returns whether the receiver took the event.
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

    /// Returns the HTTP status, where there was an answer.
    #[must_use]
    pub const fn status(self) -> Option<u16> {
        match self {
            Self::Accepted { status } | Self::Refused { status, .. } => Some(status),
            _ => None,
        }
    }
}

/// One attempt, as the delivery log keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The delivery it belongs to.
    pub delivery: DeliveryId,
    /// The event it carried.
    pub event: EventId,
    /// Whose endpoint it went to.
    pub merchant: MerchantId,
    /// 1 for the first.
    pub number: u32,
    /// Why it was made.
    pub trigger: Trigger,
    /// Where it went: host and path, without a query.
    pub endpoint: String,
    /// When it was due.
    pub scheduled_at: Timestamp,
    /// When the request was sent, by the wall clock that signed it.
    pub started_at: Timestamp,
    /// When it ended, by the engine's own time, on which the schedule runs.
    pub ended_at: Timestamp,
    /// How long it took.
    pub duration_ms: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// The headers that were sent; signatures are left out. Empty once they are older than the retention.
    pub request_headers: Vec<(String, String)>,
    /// The start of the answer's body, at most 1 KiB.
    pub response_snippet: String,
    /// When the next attempt is due, if there is one.
    pub next_attempt_at: Option<Timestamp>,
    /// SHA-256 of the body that was sent.
    pub body_sha256: [u8; 32],
}

impl Attempt {
    /// Returns what is kept of it once its event is older than the retention: neither headers nor the response's body.
    #[must_use]
    pub fn pruned(self) -> Self {
        Self { response_snippet: String::new(), request_headers: Vec::new(), ..self }
    }
}

/// Returns the SHA-256 of a body, by which the delivery log says what was sent.
#[must_use]
pub fn body_digest(body: &[u8]) -> [u8; 32] {
    Sha256::digest(body).into()
}

/// What follows an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryDecision {
    /// The receiver has it.
    Delivered,
    /// Try again then.
    RetryAt(Timestamp),
    /// The schedule is exhausted.
    GiveUp,
    /// The receiver said it is gone for good (410): stop sending to this endpoint.
    DisableEndpoint,
}

impl Delivery {
    /// Decides what follows an attempt that ended at `now`. `random` spreads retries by ±20 %, so that receivers that
    /// failed together are not called together.
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

/// Scales by 0.8 to 1.2.
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
    fn an_overloaded_receiver_is_left_alone_for_a_minute() {
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
    fn what_a_merchant_asked_for_is_sent_once() {
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
    fn a_replayed_delivery_counts_on_and_begins_its_schedule_anew() {
        let failed = DeliveryRecord { state: DeliveryState::Failed, ..DeliveryRecord::new(delivery(10)) };
        let replayed = failed.replayed(Timestamp::from_seconds(7));
        assert_eq!((replayed.state, replayed.delivery.attempts), (DeliveryState::Pending, 10));
        let next = replayed.delivery.after(FAILED, Timestamp::EPOCH, MIDDLE);
        assert_eq!(next, RetryDecision::RetryAt(Timestamp::from_seconds(5)));
        assert!(failed.is_replayable() && !replayed.is_replayable());
    }

    #[test]
    fn retry_after_is_honoured_between_the_schedule_and_twice_it() {
        let asked = |seconds| Outcome::Refused { status: 503, retry_after: Some(Duration::from_secs(seconds)) };
        for (seconds, waited) in [(1, 300), (400, 400), (9_999, 600)] {
            assert_eq!(
                delivery(1).after(asked(seconds), Timestamp::EPOCH, 0),
                RetryDecision::RetryAt(Timestamp::from_seconds(waited))
            );
        }
    }

    #[test]
    fn success_ends_it_and_gone_disables_the_endpoint() {
        assert_eq!(delivery(3).after(Outcome::Accepted { status: 204 }, Timestamp::EPOCH, 0), RetryDecision::Delivered);
        let gone = Outcome::Refused { status: 410, retry_after: None };
        assert_eq!(delivery(0).after(gone, Timestamp::EPOCH, 0), RetryDecision::DisableEndpoint);
        assert_eq!(
            delivery(0).after(Outcome::Blocked, Timestamp::EPOCH, MIDDLE),
            RetryDecision::RetryAt(Timestamp::from_seconds(5))
        );
    }
}
