//! The stored forms of events, deliveries, attempts, endpoint health and epochs.

use std::time::Duration;

use engine::{
    event_list::Epoch,
    ids::{DeliveryId, EndpointId, EventId, MerchantId, PaymentId},
    time::Timestamp,
    webhook::{Attempt, Delivery, DeliveryRecord, DisableReason, EndpointHealth, Outcome},
};
use prost::Message;

use crate::{
    batch::EventRecord,
    record::{
        codes::Code,
        wire::{Bits, Damage, array, code, code_of, id, millis, optional_code, seal, time, unseal},
    },
};

const EVENT_VERSION: u8 = 1;
const DELIVERY_VERSION: u8 = 1;
const ATTEMPT_VERSION: u8 = 1;
const ENDPOINT_VERSION: u8 = 1;

#[derive(Clone, PartialEq, Message)]
struct StoredEvent {
    #[prost(message, optional, tag = "1")]
    id: Option<Bits>,
    #[prost(message, optional, tag = "2")]
    payment: Option<Bits>,
    /// The delivery to the merchant's default endpoint.
    #[prost(message, optional, tag = "3")]
    delivery: Option<Bits>,
    #[prost(uint64, tag = "4")]
    at_ms: u64,
    #[prost(bytes = "vec", tag = "5")]
    body: Vec<u8>,
    #[prost(bool, tag = "6")]
    is_test: bool,
    #[prost(uint32, tag = "7")]
    kind: u32,
    /// The deliveries to other endpoints.
    #[prost(message, repeated, tag = "8")]
    others: Vec<StoredRoute>,
}

/// A delivery of an event to an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
struct StoredRoute {
    #[prost(message, optional, tag = "1")]
    endpoint: Option<Bits>,
    #[prost(message, optional, tag = "2")]
    delivery: Option<Bits>,
}

#[derive(Clone, PartialEq, Eq, Message)]
struct StoredDelivery {
    #[prost(uint64, tag = "1")]
    event_seq: u64,
    #[prost(message, optional, tag = "2")]
    event: Option<Bits>,
    #[prost(message, optional, tag = "3")]
    payment: Option<Bits>,
    #[prost(uint32, tag = "4")]
    attempts: u32,
    #[prost(uint32, tag = "5")]
    schedule_from: u32,
    #[prost(uint32, tag = "6")]
    trigger: u32,
    #[prost(uint32, tag = "7")]
    state: u32,
    #[prost(uint64, tag = "8")]
    due_ms: u64,
    #[prost(message, optional, tag = "9")]
    last_outcome: Option<StoredOutcome>,
    #[prost(uint64, tag = "10")]
    last_at_ms: u64,
    /// None for the merchant's default endpoint.
    #[prost(message, optional, tag = "11")]
    endpoint: Option<Bits>,
}

/// The outcome of an attempt. `number` identifies the variant; 0 means none.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
struct StoredOutcome {
    #[prost(uint32, tag = "1")]
    number: u32,
    #[prost(uint32, tag = "2")]
    status: u32,
    #[prost(uint64, optional, tag = "3")]
    retry_after_ms: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
struct StoredEndpoint {
    #[prost(uint32, tag = "1")]
    disabled: u32,
    #[prost(uint64, tag = "2")]
    disabled_at_ms: u64,
    #[prost(uint64, optional, tag = "3")]
    failing_since_ms: Option<u64>,
    #[prost(uint32, tag = "4")]
    failed_attempts: u32,
    #[prost(uint64, optional, tag = "5")]
    first_failed_event_ms: Option<u64>,
    #[prost(uint64, optional, tag = "6")]
    last_failed_event_ms: Option<u64>,
    #[prost(uint32, tag = "7")]
    transport_failures: u32,
    #[prost(uint64, optional, tag = "8")]
    last_success_at_ms: Option<u64>,
    #[prost(uint64, optional, tag = "9")]
    last_failure_at_ms: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
struct StoredAttempt {
    #[prost(message, optional, tag = "1")]
    merchant: Option<Bits>,
    #[prost(string, tag = "2")]
    endpoint: String,
    #[prost(uint64, tag = "3")]
    started_at_ms: u64,
    #[prost(uint64, tag = "4")]
    duration_ms: u64,
    #[prost(message, optional, tag = "5")]
    outcome: Option<StoredOutcome>,
    #[prost(string, tag = "8")]
    response_snippet: String,
    #[prost(uint64, optional, tag = "9")]
    next_attempt_at_ms: Option<u64>,
    #[prost(uint32, tag = "10")]
    trigger: u32,
    #[prost(uint64, tag = "11")]
    scheduled_at_ms: u64,
    #[prost(uint64, tag = "12")]
    ended_at_ms: u64,
    #[prost(bytes = "vec", tag = "13")]
    body_sha256: Vec<u8>,
    #[prost(message, repeated, tag = "14")]
    request_headers: Vec<StoredHeader>,
}

#[derive(Clone, PartialEq, Eq, Message)]
struct StoredHeader {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

/// Returns the stored form of the epochs of a store.
pub(crate) fn epochs_to_bytes(epochs: &[Epoch]) -> Vec<u8> {
    epochs.iter().flat_map(|epoch| epoch.bits().to_be_bytes()).collect()
}

/// Decodes the epochs of a store.
pub(crate) fn epochs_from_bytes(bytes: &[u8]) -> Result<Vec<Epoch>, Damage> {
    let read = |bits| Ok(Epoch::from_bits(u64::from_be_bytes(array("epochs", bits)?)));
    bytes.chunks(8).map(read).collect()
}

/// Returns the stored form of an event. Its merchant and its sequence number are the key and not repeated.
pub(crate) fn event_to_bytes(event: &EventRecord) -> Vec<u8> {
    let default = EndpointId::default_of(event.merchant);
    let others = event.deliveries.iter().filter(|(endpoint, _)| *endpoint != default);
    let record = StoredEvent {
        id: Some(event.id.bits().into()),
        payment: Some(event.payment.bits().into()),
        delivery: event.delivery().map(|delivery| delivery.bits().into()),
        at_ms: event.at.millis(),
        body: event.body.clone(),
        is_test: event.is_test,
        kind: event.kind.number(),
        others: others
            .map(|(endpoint, delivery)| StoredRoute {
                endpoint: Some(endpoint.bits().into()),
                delivery: Some(delivery.bits().into()),
            })
            .collect(),
    };
    seal(EVENT_VERSION, &record)
}

/// Decodes an event.
pub(crate) fn event_from_bytes((merchant, seq): (u128, u64), bytes: &[u8]) -> Result<EventRecord, Damage> {
    let record: StoredEvent = unseal(EVENT_VERSION, bytes)?;
    let merchant = MerchantId::from_bits(merchant);
    let default = StoredRoute { endpoint: Some(merchant.bits().into()), delivery: record.delivery };
    let routes = record.delivery.map(|_| default).into_iter().chain(record.others);
    let deliveries = routes.map(|route| {
        let endpoint = EndpointId::from_bits(id("endpoint", route.endpoint)?);
        Ok::<_, Damage>((endpoint, DeliveryId::from_bits(id("delivery", route.delivery)?)))
    });
    Ok(EventRecord {
        id: EventId::from_bits(id("id", record.id)?),
        seq,
        merchant,
        payment: PaymentId::from_bits(id("payment", record.payment)?),
        deliveries: deliveries.collect::<Result<_, Damage>>()?,
        at: time(record.at_ms),
        body: record.body,
        is_test: record.is_test,
        kind: code("kind", record.kind)?,
    })
}

/// Returns the stored form of a delivery. Its merchant and its id are the key and not repeated.
pub(crate) fn delivery_to_bytes(logged: &DeliveryRecord) -> Vec<u8> {
    let delivery = &logged.delivery;
    let record = StoredDelivery {
        event_seq: delivery.event_seq,
        event: Some(delivery.event.bits().into()),
        payment: Some(delivery.payment.bits().into()),
        attempts: delivery.attempts,
        schedule_from: delivery.schedule_from,
        trigger: delivery.trigger.number(),
        state: logged.state.number(),
        due_ms: delivery.due_at.millis(),
        last_outcome: logged.last.map(|(outcome, _)| outcome_to_stored(outcome)),
        last_at_ms: logged.last.map_or(0, |(_, at)| at.millis()),
        endpoint: (delivery.endpoint != EndpointId::default_of(delivery.merchant))
            .then(|| delivery.endpoint.bits().into()),
    };
    seal(DELIVERY_VERSION, &record)
}

/// Decodes a delivery.
pub(crate) fn delivery_from_bytes((merchant, delivery): (u128, u128), bytes: &[u8]) -> Result<DeliveryRecord, Damage> {
    let record: StoredDelivery = unseal(DELIVERY_VERSION, bytes)?;
    let last = record.last_outcome.map(outcome_from_stored).transpose()?;
    let endpoint = record.endpoint.map(|bits| id("endpoint", Some(bits))).transpose()?;
    Ok(DeliveryRecord {
        delivery: Delivery {
            id: DeliveryId::from_bits(delivery),
            event: EventId::from_bits(id("event", record.event)?),
            event_seq: record.event_seq,
            merchant: MerchantId::from_bits(merchant),
            endpoint: EndpointId::from_bits(endpoint.unwrap_or(merchant)),
            payment: PaymentId::from_bits(id("payment", record.payment)?),
            trigger: code("trigger", record.trigger)?,
            attempts: record.attempts,
            schedule_from: record.schedule_from,
            due_at: time(record.due_ms),
        },
        state: code("state", record.state)?,
        last: last.map(|outcome| (outcome, time(record.last_at_ms))),
    })
}

/// The key of an attempt: event, delivery, attempt number.
pub(crate) type AttemptKey = (u128, u128, u32);

/// Returns the stored form of an attempt. Its event, its delivery and its number are the key and not repeated.
pub(crate) fn attempt_to_bytes(attempt: Attempt) -> Vec<u8> {
    let record = StoredAttempt {
        merchant: Some(attempt.merchant.bits().into()),
        endpoint: attempt.endpoint,
        started_at_ms: attempt.started_at.millis(),
        duration_ms: attempt.duration_ms,
        outcome: Some(outcome_to_stored(attempt.outcome)),
        response_snippet: attempt.response_snippet,
        next_attempt_at_ms: attempt.next_attempt_at.map(Timestamp::millis),
        trigger: attempt.trigger.number(),
        scheduled_at_ms: attempt.scheduled_at.millis(),
        ended_at_ms: attempt.ended_at.millis(),
        body_sha256: attempt.body_sha256.to_vec(),
        request_headers: attempt
            .request_headers
            .into_iter()
            .map(|(name, value)| StoredHeader { name, value })
            .collect(),
    };
    seal(ATTEMPT_VERSION, &record)
}

/// Decodes an attempt.
pub(crate) fn attempt_from_bytes((event, delivery, number): AttemptKey, bytes: &[u8]) -> Result<Attempt, Damage> {
    let record: StoredAttempt = unseal(ATTEMPT_VERSION, bytes)?;
    Ok(Attempt {
        delivery: DeliveryId::from_bits(delivery),
        event: EventId::from_bits(event),
        merchant: MerchantId::from_bits(id("merchant", record.merchant)?),
        number,
        trigger: code("trigger", record.trigger)?,
        endpoint: record.endpoint,
        scheduled_at: time(record.scheduled_at_ms),
        started_at: time(record.started_at_ms),
        ended_at: time(record.ended_at_ms),
        duration_ms: record.duration_ms,
        outcome: outcome_from_stored(record.outcome.ok_or(Damage::Missing("outcome"))?)?,
        response_snippet: record.response_snippet,
        next_attempt_at: record.next_attempt_at_ms.map(time),
        body_sha256: array("body_sha256", &record.body_sha256)?,
        request_headers: record.request_headers.into_iter().map(|header| (header.name, header.value)).collect(),
    })
}

fn outcome_to_stored(outcome: Outcome) -> StoredOutcome {
    let (number, status, retry_after_ms) = match outcome {
        Outcome::Accepted { status } => (1, status, None),
        Outcome::Refused { status, retry_after } => (2, status, retry_after.map(millis)),
        Outcome::Timeout => (3, 0, None),
        Outcome::Connect => (4, 0, None),
        Outcome::Tls => (5, 0, None),
        Outcome::Dns => (6, 0, None),
        Outcome::Blocked => (7, 0, None),
        Outcome::ConnectionRefused => (8, 0, None),
        Outcome::ConnectionReset => (9, 0, None),
    };
    StoredOutcome { number, status: u32::from(status), retry_after_ms }
}

fn outcome_from_stored(stored: StoredOutcome) -> Result<Outcome, Damage> {
    let status = u16::try_from(stored.status)
        .map_err(|_| Damage::Value { field: "status", value: stored.status.to_string() })?;
    match stored.number {
        1 => Ok(Outcome::Accepted { status }),
        2 => Ok(Outcome::Refused { status, retry_after: stored.retry_after_ms.map(Duration::from_millis) }),
        3 => Ok(Outcome::Timeout),
        4 => Ok(Outcome::Connect),
        5 => Ok(Outcome::Tls),
        6 => Ok(Outcome::Dns),
        7 => Ok(Outcome::Blocked),
        8 => Ok(Outcome::ConnectionRefused),
        9 => Ok(Outcome::ConnectionReset),
        other => Err(Damage::Value { field: "outcome", value: other.to_string() }),
    }
}

/// Returns the stored form of an endpoint's health.
pub(crate) fn endpoint_to_bytes(endpoint: &EndpointHealth) -> Vec<u8> {
    let record = StoredEndpoint {
        disabled: code_of(endpoint.disabled.map(|(reason, _)| reason)),
        disabled_at_ms: endpoint.disabled.map_or(0, |(_, at)| at.millis()),
        failing_since_ms: endpoint.failing_since.map(Timestamp::millis),
        failed_attempts: endpoint.failed_attempts,
        first_failed_event_ms: endpoint.failed_events.map(|(first, _)| first.millis()),
        last_failed_event_ms: endpoint.failed_events.map(|(_, last)| last.millis()),
        transport_failures: endpoint.transport_failures,
        last_success_at_ms: endpoint.last_success_at.map(Timestamp::millis),
        last_failure_at_ms: endpoint.last_failure_at.map(Timestamp::millis),
    };
    seal(ENDPOINT_VERSION, &record)
}

/// Decodes an endpoint's health.
pub(crate) fn endpoint_from_bytes(bytes: &[u8]) -> Result<EndpointHealth, Damage> {
    let record: StoredEndpoint = unseal(ENDPOINT_VERSION, bytes)?;
    let disabled: Option<DisableReason> = optional_code("disabled", record.disabled)?;
    Ok(EndpointHealth {
        disabled: disabled.map(|reason| (reason, time(record.disabled_at_ms))),
        failing_since: record.failing_since_ms.map(time),
        failed_attempts: record.failed_attempts,
        failed_events: record.first_failed_event_ms.map(time).zip(record.last_failed_event_ms.map(time)),
        transport_failures: record.transport_failures,
        last_success_at: record.last_success_at_ms.map(time),
        last_failure_at: record.last_failure_at_ms.map(time),
    })
}
