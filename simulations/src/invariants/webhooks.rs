//! Invariants of every received webhook and every recorded attempt.

use engine::webhook::Trigger;

use super::*;
use crate::receivers::snippet_of;

/// How long an attempt may take until it is recorded, milliseconds.
const ATTEMPT_MS: u64 = 60_000;
/// Requests that one endpoint may have at once.
const MAX_PER_ENDPOINT: usize = 8;

pub(super) fn webhook_state_is_durable(received: &ReceivedWebhook<'_>) -> Verdict {
    let Some(payment) = received.payment else {
        let is_durable = received.observer.events.contains_key(&received.event);
        return hold(is_durable, || "an event is sent that is not durable".to_owned());
    };
    let Some(known) = received.observer.payments.get(&payment) else {
        return Err("a webhook reports a session that is not durable".to_owned());
    };
    let payment = &known.payment;
    let is_past = payment.sequence >= received.sequence && received.observer.events.contains_key(&received.event);
    hold(is_past, || format!("the merchant gets {:?} and only {} is durable", received.status, payment.state))?;
    let same = payment.sequence > received.sequence || payment.state.as_str() == received.status;
    hold(same, || format!("the merchant gets {:?} and durable is {}", received.status, payment.state))
}

pub(super) fn webhook_is_signed(received: &ReceivedWebhook<'_>) -> Verdict {
    let event = received.observer.events.get(&received.event);
    let Some(merchant) = event.and_then(|event| received.observer.merchants.get(&event.merchant)) else {
        return Err("a webhook of an event or a merchant that is not durable".to_owned());
    };
    let Some(endpoint) = endpoint_of(received.observer, &received.delivery) else {
        return Err("a webhook of a delivery that is not durable".to_owned());
    };
    // The endpoint may be deleted while a request is on its way.
    let Some(secrets) = secrets_of(merchant, endpoint) else { return Ok(()) };
    let header = |name: &str| received.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
    let (Some(time_ms), Some(legacy), Some(seconds), Some(standard), Some(id)) = (
        header("X-Hivetill-Timestamp"),
        header("X-Hivetill-Signature"),
        header("webhook-timestamp"),
        header("webhook-signature"),
        header("webhook-id"),
    ) else {
        return Err("a signature header is missing".to_owned());
    };
    hold(id == received.event.to_string(), || "webhook-id is not the event's id".to_owned())?;
    let kind = event.map(|event| event.kind.as_str());
    hold(header("X-Hivetill-Event") == kind, || format!("X-Hivetill-Event is not {kind:?}"))?;
    hold(header("content-type") == Some("application/json"), || "the content type of the body is not JSON".to_owned())?;
    let millis = time_ms.parse::<u64>().unwrap_or_default();
    hold(seconds.parse() == Ok(millis / 1_000), || format!("signed for {time_ms} ms and for {seconds} s"))?;
    let previous =
        received.headers.iter().filter(|(name, _)| name.starts_with("X-Hivetill-Signature-Previous")).count();
    hold(previous <= 3, || format!("{previous} replaced secrets sign"))?;
    let is_fresh = time_ms.parse::<u64>().is_ok_and(|ms| ms.abs_diff(received.now.millis()) <= 300_000);
    let is_steady = received.observer.is_clock_steady_since(received.observer.now_ms.saturating_sub(ATTEMPT_MS));
    hold(is_fresh || !is_steady, || format!("signed for {time_ms}, received at {}", received.now.millis()))?;
    let (old_way, new_way) = signatures(&secrets.current, received, time_ms, seconds, id)?;
    hold(legacy == old_way, || "the older signature does not verify".to_owned())?;
    hold(standard.split(' ').any(|one| one == new_way), || "the standard signature does not verify".to_owned())?;
    if !is_steady {
        // Whether a secret was still valid depends on the clock.
        return Ok(());
    }
    let valid = secrets.previous.iter().filter(|(_, until)| received.now < *until);
    let mut valid = valid.map(|(secret, _)| secret);
    for name in ["X-Hivetill-Signature-Previous", "X-Hivetill-Signature-Previous-2", "X-Hivetill-Signature-Previous-3"]
    {
        match (valid.next(), header(name)) {
            (None, None) => {}
            (None, Some(_)) => return Err("a replaced secret still signs after its grace".to_owned()),
            (Some(_), None) => return Err("a replaced secret does not sign during its grace".to_owned()),
            (Some(secret), Some(legacy)) => {
                let (old_way, new_way) = signatures(secret, received, time_ms, seconds, id)?;
                let verifies = legacy == old_way && standard.split(' ').any(|one| one == new_way);
                hold(verifies, || "a replaced secret's signature does not verify".to_owned())?;
            }
        }
    }
    Ok(())
}

/// Returns the endpoint of a delivery.
fn endpoint_of(observer: &Observer, delivery: &DeliveryId) -> Option<EndpointId> {
    observer.deliveries.get(delivery).map(|delivery_state| delivery_state.endpoint)
}

/// Returns the secrets of an endpoint: the merchant's for the endpoint with its id, otherwise its own.
fn secrets_of(merchant: &Merchant, endpoint: EndpointId) -> Option<&Secrets> {
    if endpoint.bits() == merchant.id.bits() {
        return Some(&merchant.secrets);
    }
    merchant.endpoints.iter().find(|known| known.id == endpoint).map(|known| &known.secrets)
}

/// Signs as a receiver would to compare: by both rules, with one of the secrets.
pub(super) fn signatures(
    secret: &Secret,
    received: &ReceivedWebhook<'_>,
    time_ms: &str,
    seconds: &str,
    id: &str,
) -> Result<(String, String), String> {
    let text = secret.reveal();
    let key = BASE64_STANDARD.decode(text.strip_prefix("whsec_").unwrap_or_default());
    let key = key.map_err(|error| format!("the secret is no base64: {error}"))?;
    let legacy = mac(text.as_bytes(), &[time_ms.as_bytes(), b".", received.body]);
    let standard = mac(&key, &[id.as_bytes(), b".", seconds.as_bytes(), b".", received.body]);
    Ok((hex::encode(legacy), format!("v1,{}", BASE64_STANDARD.encode(standard))))
}

pub(super) fn mac(key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().to_vec()
}

pub(super) fn webhook_body_never_changes(received: &ReceivedWebhook<'_>) -> Verdict {
    let same = received.observer.events.get(&received.event).is_some_and(|event| event.body == received.body);
    hold(same, || "the body is not the event's".to_owned())
}

pub(super) fn delivered_is_delivered(received: &ReceivedWebhook<'_>) -> Verdict {
    let delivery_state = received.observer.deliveries.get(&received.delivery);
    let in_outbox = delivery_state.is_some_and(|delivery_state| delivery_state.due_at.is_some());
    hold(in_outbox, || format!("{} has left the outbox and is sent again", received.delivery))
}

pub(super) fn one_attempt_at_a_time(received: &ReceivedWebhook<'_>) -> Verdict {
    let Some(own) = received.payment else { return Ok(()) };
    let observer = received.observer;
    let endpoint = endpoint_of(observer, &received.delivery);
    let mut others = observer.posts_in_flight.iter();
    let other = others.find(|(id, payment)| **payment == own && endpoint_of(observer, id) == endpoint);
    hold(other.is_none(), || "two attempts for one session at once".to_owned())
}

pub(super) fn endpoints_are_spared(received: &ReceivedWebhook<'_>) -> Verdict {
    let observer = received.observer;
    let Some(endpoint) = endpoint_of(observer, &received.delivery) else { return Ok(()) };
    let others = observer.posts_in_flight.keys().filter(|id| endpoint_of(observer, id) == Some(endpoint)).count();
    hold(others < MAX_PER_ENDPOINT, || format!("{endpoint} gets {} requests at once", others + 1))?;
    // Requests that began before the breaker opened may still be under way.
    let is_steady = observer.is_clock_steady_since(observer.now_ms.saturating_sub(2 * ATTEMPT_MS));
    let opened_at = observer.endpoints.get(&endpoint).and_then(|seen| seen.breaker_open_since).filter(|_| is_steady);
    let is_open = opened_at.is_some_and(|at| received.now.since(at).as_millis() >= u128::from(ATTEMPT_MS));
    hold(others == 0 || !is_open, || format!("{endpoint} does not respond and gets {} requests at once", others + 1))
}

pub(super) fn attempts_are_counted(received: &ReceivedWebhook<'_>) -> Verdict {
    let Some(delivery_state) = received.observer.deliveries.get(&received.delivery) else { return Ok(()) };
    hold(received.attempt == delivery_state.attempts + 1, || {
        format!("attempt {} after {} recorded ones", received.attempt, delivery_state.attempts)
    })?;
    // A clock that was set back may come after one that was ahead; the engine's own time never goes back behind the ledger.
    let now = received.now.max(received.observer.true_time());
    let is_due = delivery_state.due_at.is_none_or(|due| due.since(now).as_secs() <= 120);
    let is_steady = received.observer.is_clock_steady_since(delivery_state.scheduled_ms.saturating_sub(ATTEMPT_MS));
    hold(is_due || !is_steady, || "sent before it was due".to_owned())
}

pub(super) fn attempt_record_is_accurate(attempted: &Attempted<'_>) -> Verdict {
    let attempt = attempted.attempt;
    hold(attempt.number == attempted.before.attempts + 1, || format!("attempt {} out of order", attempt.number))?;
    let given = attempted.observer.receiver_responses.get(&(attempt.delivery, attempt.number));
    hold(given == Some(&attempt.outcome), || format!("recorded as {:?}, was {given:?}", attempt.outcome))?;
    let snippet = snippet_of(attempt.outcome);
    hold(attempt.response_snippet == snippet, || format!("{snippet:?} is recorded as {:?}", attempt.response_snippet))?;
    let due_at = attempted.before.due_at;
    hold(due_at.is_none_or(|due_at| attempt.scheduled_at == due_at), || {
        format!("it was due at {due_at:?}, and is recorded as due at {}", attempt.scheduled_at)
    })?;
    let kept = attempted.observer.events.get(&attempt.event).map(|event| (event.merchant, event.is_test));
    let is_its = kept.is_none_or(|(merchant, is_test)| {
        let trigger = match (attempted.before.is_manual, is_test) {
            (true, _) => Trigger::Manual,
            (false, true) => Trigger::Test,
            (false, false) => Trigger::Auto,
        };
        attempt.merchant == merchant && attempt.trigger == trigger
    });
    hold(is_its, || format!("it is recorded as {:?} of {}", attempt.trigger, attempt.merchant))
}

pub(super) fn record_shows_no_secret(attempted: &Attempted<'_>) -> Verdict {
    let attempt = attempted.attempt;
    hold(!attempt.endpoint.contains('?'), || format!("the endpoint is {:?}", attempt.endpoint))?;
    let is_signature = |(name, value): &&(String, String)| {
        name.to_ascii_lowercase().contains("signature") && value.chars().filter(char::is_ascii_hexdigit).count() > 20
    };
    let shown = attempt.request_headers.iter().find(is_signature);
    hold(shown.is_none(), || format!("{:?} is kept with its signature", shown.map(|(name, _)| name)))?;
    let Some(event) = attempted.observer.events.get(&attempt.event) else { return Ok(()) };
    let digest = <Sha256 as sha2::Digest>::digest(&event.body);
    hold(attempt.body_sha256 == *digest, || "the digest is not that of the event's body".to_owned())
}

pub(super) fn schedule_is_kept(attempted: &Attempted<'_>) -> Verdict {
    let attempt = attempted.attempt;
    let number = attempt.number - attempted.before.schedule_from;
    let Some(next) = attempt.next_attempt_at else {
        let ends = match attempt.outcome {
            Outcome::Accepted { .. } | Outcome::Refused { status: 410, .. } => true,
            _ => attempted.before.is_once || number as usize >= SCHEDULE.len(),
        };
        return hold(ends, || format!("given up after attempt {} ({})", attempt.number, attempt.outcome.as_str()));
    };
    hold(!attempt.outcome.is_success(), || "a success is retried".to_owned())?;
    hold(!attempted.before.is_once, || "a requested redelivery is retried".to_owned())?;
    // A copy of the schedule, so that a wrong table is detected: seconds after attempts 1, 2, …
    const SECONDS: [u64; 9] = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400];
    let Some(wait) = SECONDS.get(number as usize - 1) else {
        return Err(format!("attempt {} is not the last", attempt.number));
    };
    // It starts by the wall clock, which may be far behind; it ends, and the next one is due, by the engine's time.
    let started = attempt.started_at.max(attempt.ended_at.minus(Duration::from_millis(ATTEMPT_MS)));
    let slow = matches!(attempt.outcome, Outcome::Timeout | Outcome::Refused { status: 429, .. });
    let least = if slow { (*wait).max(60) } else { *wait };
    let waits = next.since(started).as_secs();
    // The engine's time may be ahead of the clock the attempt is dated by.
    let fits = waits + 61 >= least * 8 / 10 && waits <= least * 2 + 90;
    let is_steady = attempted.observer.is_clock_steady_since(attempted.observer.now_ms.saturating_sub(ATTEMPT_MS));
    hold(fits || !is_steady, || format!("attempt {} is followed after {waits} s, not about {least} s", attempt.number))
}

/// Requests that an endpoint may get at once after a pause, and in a second.
const PER_SECOND: u64 = 25;

pub(super) fn endpoints_are_paced(received: &ReceivedWebhook<'_>) -> Verdict {
    let observer = received.observer;
    let Some(endpoint) = endpoint_of(observer, &received.delivery) else { return Ok(()) };
    let Some(times) = observer.posts_ms.get(&endpoint) else { return Ok(()) };
    // Of any number of requests in a row, the first ones may come at once.
    for (index, first_ms) in times.iter().enumerate() {
        let count = (times.len() - index) as u64 + 1;
        let most = PER_SECOND + (observer.now_ms - first_ms) * PER_SECOND / 1_000 + 1;
        hold(count <= most, || format!("{count} requests within {} ms", observer.now_ms - first_ms))?;
    }
    Ok(())
}
