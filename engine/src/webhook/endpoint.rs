//! Health of a webhook endpoint: failures, circuit breaker and automatic disabling.

use std::time::Duration;

use super::{Attempt, Delivery, Outcome, Trigger};
use crate::{mutant, time::Timestamp};

/// Consecutive transport failures after which the circuit breaker opens: only one attempt runs at a time.
const BREAKER_OPENS_AFTER: u32 = 10;
/// Minimum duration of consecutive failures before an endpoint is disabled.
const DISABLE_AFTER: Duration = Duration::from_secs(120 * 3_600);
/// Minimum number of failed attempts before an endpoint is disabled.
const DISABLE_MIN_ATTEMPTS: u32 = 20;
/// Minimum time between the failed events before an endpoint is disabled, so that a single undeliverable event is not
/// sufficient.
const DISABLE_MIN_SPREAD: Duration = Duration::from_secs(12 * 3_600);
/// Duration of failures after which the merchant is warned.
const WARN_AFTER: Duration = Duration::from_secs(24 * 3_600);
const WARN_AGAIN_AFTER: Duration = Duration::from_secs(72 * 3_600);

/// The health of an endpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EndpointHealth {
    /// The reason and the time it was disabled.
    pub disabled: Option<(DisableReason, Timestamp)>,
    /// The first failure since the last success.
    pub failing_since: Option<Timestamp>,
    /// The number of failed scheduled attempts since the last success.
    pub failed_attempts: u32,
    /// The times of the earliest and the latest event with failed attempts since the last success.
    pub failed_events: Option<(Timestamp, Timestamp)>,
    /// Consecutive attempts without an HTTP response.
    pub transport_failures: u32,
    /// When an event was last delivered.
    pub last_success_at: Option<Timestamp>,
    /// When an attempt last failed.
    pub last_failure_at: Option<Timestamp>,
}

/// The reason why an endpoint is disabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DisableReason {
    /// It responded 410 Gone.
    Gone,
    /// Every attempt failed for five days.
    Failing,
}

impl DisableReason {
    /// Returns the wire name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Gone => "gone",
            Self::Failing => "failing",
        }
    }
}

/// A warning before an endpoint is disabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Warning {
    /// It has been failing for a day.
    Failing24Hours,
    /// It has been failing for three days.
    Failing72Hours,
}

impl Warning {
    /// Returns the wire name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Failing24Hours => "failing_24h",
            Self::Failing72Hours => "failing_72h",
        }
    }
}

impl EndpointHealth {
    /// Returns the health after an attempt of a delivery.
    #[must_use]
    pub fn after(&self, delivery: &Delivery, attempt: &Attempt) -> Self {
        let at = attempt.ended_at;
        let mut next = self.clone();
        next.transport_failures = match attempt.outcome {
            Outcome::Accepted { .. } => 0,
            // Any response resets the count, but only a success closes an open breaker.
            Outcome::Refused { .. } if !self.is_breaker_open() => 0,
            Outcome::Refused { .. } => self.transport_failures,
            _ => self.transport_failures.saturating_add(1),
        };
        if attempt.outcome.is_success() {
            next.last_success_at = Some(at);
            (next.failing_since, next.failed_attempts, next.failed_events) = (None, 0, None);
            return next;
        }
        next.last_failure_at = Some(at);
        // Failures of tests and redeliveries do not count.
        if delivery.trigger == Trigger::Auto || mutant!("tests-disable-endpoints") {
            let event_at = delivery.event.created_at();
            let since = *next.failing_since.get_or_insert(at);
            if mutant!("failing-since-the-last-failure") {
                next.failing_since = Some(at);
            }
            next.failed_attempts = next.failed_attempts.saturating_add(1);
            let (first, last) = next.failed_events.unwrap_or((event_at, event_at));
            let (first, last) = (first.min(event_at), last.max(event_at));
            next.failed_events = Some((first, last));
            let disable_after =
                if mutant!("endpoint-disabled-early") { Duration::from_secs(3_600) } else { DISABLE_AFTER };
            let is_hopeless = at.since(since) >= disable_after
                && next.failed_attempts >= DISABLE_MIN_ATTEMPTS
                && last.since(first) >= DISABLE_MIN_SPREAD;
            if is_hopeless {
                next.disabled.get_or_insert((DisableReason::Failing, at));
            }
        }
        if matches!(attempt.outcome, Outcome::Refused { status: 410, .. }) {
            next.disabled.get_or_insert((DisableReason::Gone, at));
        }
        next
    }

    /// Returns whether scheduled deliveries are sent to the endpoint.
    #[must_use]
    pub const fn is_enabled(&self) -> bool {
        self.disabled.is_none()
    }

    /// Returns whether the circuit breaker is open: only one attempt may run at a time.
    #[must_use]
    pub const fn is_breaker_open(&self) -> bool {
        self.transport_failures >= BREAKER_OPENS_AFTER
    }

    /// Returns the warning for the merchant at `now`.
    #[must_use]
    pub fn warning(&self, now: Timestamp) -> Option<Warning> {
        match now.since(self.failing_since?) {
            failing if failing >= WARN_AGAIN_AFTER && !mutant!("second-warning-forgotten") => {
                Some(Warning::Failing72Hours)
            }
            failing if failing >= WARN_AFTER => Some(Warning::Failing24Hours),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{DeliveryId, EndpointId, EventId, MerchantId, PaymentId};

    const HOUR: u64 = 3_600;

    fn delivery(trigger: Trigger, event_hour: u64) -> Delivery {
        Delivery {
            id: DeliveryId::from_bits(1),
            event: EventId::new(Timestamp::from_seconds(event_hour * HOUR), [0; 10]),
            event_seq: 1,
            merchant: MerchantId::from_bits(2),
            endpoint: EndpointId::from_bits(2),
            payment: PaymentId::from_bits(3),
            trigger,
            attempts: 0,
            schedule_from: 0,
            due_at: Timestamp::EPOCH,
        }
    }

    fn attempt(outcome: Outcome, hour: u64) -> Attempt {
        let at = Timestamp::from_seconds(hour * HOUR);
        Attempt {
            delivery: DeliveryId::from_bits(1),
            event: EventId::from_bits(1),
            merchant: MerchantId::from_bits(2),
            number: 1,
            trigger: Trigger::Auto,
            endpoint: "shop.example/hook".to_owned(),
            scheduled_at: at,
            started_at: at,
            ended_at: at,
            duration_ms: 0,
            outcome,
            request_headers: Vec::new(),
            response_snippet: String::new(),
            next_attempt_at: None,
            body_sha256: [0; 32],
        }
    }

    const FAILED: Outcome = Outcome::Refused { status: 500, retry_after: None };
    const TAKEN: Outcome = Outcome::Accepted { status: 204 };

    /// An endpoint that fails every hour from 0 to `hours`; `event_hour` returns the hour of each event.
    fn failing(hours: u64, event_hour: impl Fn(u64) -> u64) -> EndpointHealth {
        (0..=hours).fold(EndpointHealth::default(), |endpoint, hour| {
            endpoint.after(&delivery(Trigger::Auto, event_hour(hour)), &attempt(FAILED, hour))
        })
    }

    #[test]
    fn five_days_of_failures_disable_an_endpoint() {
        assert_eq!(failing(119, |hour| hour).disabled, None);
        let disabled = failing(120, |hour| hour).disabled;
        assert_eq!(disabled, Some((DisableReason::Failing, Timestamp::from_seconds(120 * HOUR))));
    }

    #[test]
    fn a_single_event_few_attempts_or_a_success_do_not_disable_an_endpoint() {
        assert!(failing(200, |_| 0).is_enabled(), "a single event");
        assert!(failing(200, |hour| hour.min(11)).is_enabled(), "events within 12 hours");
        assert!(!failing(200, |hour| hour.min(12)).is_enabled());
        let seldom = (0..19).fold(EndpointHealth::default(), |endpoint, n| {
            endpoint.after(&delivery(Trigger::Auto, n * 24), &attempt(FAILED, n * 24))
        });
        assert!(seldom.is_enabled(), "19 attempts in 18 days");
        assert!(!seldom.after(&delivery(Trigger::Auto, 500), &attempt(FAILED, 500)).is_enabled());
        let recovered = failing(119, |hour| hour).after(&delivery(Trigger::Auto, 119), &attempt(TAKEN, 119));
        let recovered = recovered.after(&delivery(Trigger::Auto, 120), &attempt(FAILED, 120));
        assert!(recovered.is_enabled() && recovered.failed_attempts == 1);
    }

    #[test]
    fn redeliveries_and_tests_affect_endpoint_health_only_on_success() {
        let tried = (0..300).fold(EndpointHealth::default(), |endpoint, hour| {
            endpoint.after(&delivery(Trigger::Test, hour), &attempt(FAILED, hour))
        });
        assert_eq!((tried.failing_since, tried.failed_attempts, tried.is_enabled()), (None, 0, true));
        let healed = failing(50, |hour| hour).after(&delivery(Trigger::Manual, 0), &attempt(TAKEN, 51));
        assert_eq!((healed.failing_since, healed.warning(Timestamp::from_seconds(99 * HOUR))), (None, None));
    }

    #[test]
    fn gone_disables_at_once() {
        let gone = attempt(Outcome::Refused { status: 410, retry_after: None }, 1);
        let disabled = EndpointHealth::default().after(&delivery(Trigger::Auto, 1), &gone).disabled;
        assert_eq!(disabled, Some((DisableReason::Gone, gone.ended_at)));
    }

    #[test]
    fn warnings_come_after_one_day_and_after_three() {
        let endpoint = failing(0, |hour| hour);
        let warned = |hour: u64| endpoint.warning(Timestamp::from_seconds(hour * HOUR));
        assert_eq!(warned(23), None);
        assert_eq!(warned(24), Some(Warning::Failing24Hours));
        assert_eq!(warned(71), Some(Warning::Failing24Hours));
        assert_eq!(warned(72), Some(Warning::Failing72Hours));
    }

    #[test]
    fn the_breaker_opens_after_ten_transport_failures_and_closes_on_success() {
        let fail =
            |endpoint: &EndpointHealth, outcome| endpoint.after(&delivery(Trigger::Auto, 0), &attempt(outcome, 0));
        let mut endpoint = EndpointHealth::default();
        for outcome in
            [Outcome::Timeout, Outcome::ConnectionRefused, Outcome::Tls, Outcome::Dns, Outcome::Blocked].repeat(2)
        {
            assert!(!endpoint.is_breaker_open());
            endpoint = fail(&endpoint, outcome);
        }
        assert!(endpoint.is_breaker_open());
        assert!(fail(&endpoint, FAILED).is_breaker_open(), "an HTTP error is not a success");
        assert!(!fail(&endpoint, TAKEN).is_breaker_open());
        let nine = (0..9).fold(EndpointHealth::default(), |endpoint, _| fail(&endpoint, Outcome::Timeout));
        assert_eq!(fail(&nine, FAILED).transport_failures, 0, "an HTTP response resets the count");
    }
}
