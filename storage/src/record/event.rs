//! The bytes of an event, of its delivery in the outbox, and of an attempt to deliver it.

use std::time::Duration;

use engine::{
    ids::{DeliveryId, EventId, MerchantId, PaymentId},
    time::Timestamp,
    webhook::{Attempt, Delivery, Outcome},
};
use prost::Message;

use super::{Bits, Damage, id, millis, seal, time, unseal};
use crate::batch::EventRecord;

const EVENT_VERSION: u8 = 1;
const DELIVERY_VERSION: u8 = 1;
const ATTEMPT_VERSION: u8 = 1;

#[derive(Clone, PartialEq, Message)]
struct StoredEvent {
    #[prost(message, optional, tag = "1")]
    id: Option<Bits>,
    #[prost(message, optional, tag = "2")]
    payment: Option<Bits>,
    #[prost(message, optional, tag = "3")]
    delivery: Option<Bits>,
    #[prost(uint64, tag = "4")]
    at_ms: u64,
    #[prost(bytes = "vec", tag = "5")]
    body: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
struct StoredDelivery {
    #[prost(uint64, tag = "1")]
    event_seq: u64,
    #[prost(message, optional, tag = "2")]
    merchant: Option<Bits>,
    #[prost(message, optional, tag = "3")]
    payment: Option<Bits>,
    #[prost(uint32, tag = "4")]
    attempts: u32,
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
    #[prost(uint32, tag = "5")]
    outcome: u32,
    #[prost(uint32, tag = "6")]
    status: u32,
    #[prost(uint64, optional, tag = "7")]
    retry_after_ms: Option<u64>,
    #[prost(string, tag = "8")]
    response_snippet: String,
    #[prost(uint64, optional, tag = "9")]
    next_attempt_at_ms: Option<u64>,
}

/// Returns an event's stored form. Its merchant and its place in the merchant's list are the key and not repeated.
pub(crate) fn event_to_bytes(event: &EventRecord) -> Vec<u8> {
    let record = StoredEvent {
        id: Some(event.id.bits().into()),
        payment: Some(event.payment.bits().into()),
        delivery: Some(event.delivery.bits().into()),
        at_ms: event.at.millis(),
        body: event.body.clone(),
    };
    seal(EVENT_VERSION, &record)
}

/// Reads an event.
pub(crate) fn event_from_bytes((merchant, seq): (u128, u64), bytes: &[u8]) -> Result<EventRecord, Damage> {
    let record: StoredEvent = unseal(EVENT_VERSION, bytes)?;
    Ok(EventRecord {
        id: EventId::from_bits(id("id", record.id)?),
        seq,
        merchant: MerchantId::from_bits(merchant),
        payment: PaymentId::from_bits(id("payment", record.payment)?),
        delivery: DeliveryId::from_bits(id("delivery", record.delivery)?),
        at: time(record.at_ms),
        body: record.body,
    })
}

/// Returns a delivery's stored form. When it is due, its event and its id are the key and not repeated.
pub(crate) fn delivery_to_bytes(delivery: &Delivery) -> Vec<u8> {
    let record = StoredDelivery {
        event_seq: delivery.event_seq,
        merchant: Some(delivery.merchant.bits().into()),
        payment: Some(delivery.payment.bits().into()),
        attempts: delivery.attempts,
    };
    seal(DELIVERY_VERSION, &record)
}

/// Reads a delivery.
pub(crate) fn delivery_from_bytes(
    (due_ms, event, delivery): (u64, u128, u128),
    bytes: &[u8],
) -> Result<Delivery, Damage> {
    let record: StoredDelivery = unseal(DELIVERY_VERSION, bytes)?;
    Ok(Delivery {
        id: DeliveryId::from_bits(delivery),
        event: EventId::from_bits(event),
        event_seq: record.event_seq,
        merchant: MerchantId::from_bits(id("merchant", record.merchant)?),
        payment: PaymentId::from_bits(id("payment", record.payment)?),
        attempts: record.attempts,
        due_at: time(due_ms),
    })
}

/// The key of an attempt: event, delivery, number.
pub(crate) type AttemptKey = (u128, u128, u32);

/// Returns an attempt's stored form. Its event, its delivery and its number are the key and not repeated.
pub(crate) fn attempt_to_bytes(attempt: Attempt) -> Vec<u8> {
    let (outcome, status, retry_after_ms) = match attempt.outcome {
        Outcome::Accepted { status } => (1, status, None),
        Outcome::Refused { status, retry_after } => (2, status, retry_after.map(millis)),
        Outcome::Timeout => (3, 0, None),
        Outcome::Connect => (4, 0, None),
        Outcome::Tls => (5, 0, None),
        Outcome::Dns => (6, 0, None),
        Outcome::Blocked => (7, 0, None),
    };
    let record = StoredAttempt {
        merchant: Some(attempt.merchant.bits().into()),
        endpoint: attempt.endpoint,
        started_at_ms: attempt.started_at.millis(),
        duration_ms: attempt.duration_ms,
        outcome,
        status: u32::from(status),
        retry_after_ms,
        response_snippet: attempt.response_snippet,
        next_attempt_at_ms: attempt.next_attempt_at.map(Timestamp::millis),
    };
    seal(ATTEMPT_VERSION, &record)
}

/// Reads an attempt.
pub(crate) fn attempt_from_bytes((event, delivery, number): AttemptKey, bytes: &[u8]) -> Result<Attempt, Damage> {
    let record: StoredAttempt = unseal(ATTEMPT_VERSION, bytes)?;
    let status = u16::try_from(record.status)
        .map_err(|_| Damage::Value { field: "status", value: record.status.to_string() })?;
    let outcome = match record.outcome {
        1 => Outcome::Accepted { status },
        2 => Outcome::Refused { status, retry_after: record.retry_after_ms.map(Duration::from_millis) },
        3 => Outcome::Timeout,
        4 => Outcome::Connect,
        5 => Outcome::Tls,
        6 => Outcome::Dns,
        7 => Outcome::Blocked,
        other => return Err(Damage::Value { field: "outcome", value: other.to_string() }),
    };
    Ok(Attempt {
        delivery: DeliveryId::from_bits(delivery),
        event: EventId::from_bits(event),
        merchant: MerchantId::from_bits(id("merchant", record.merchant)?),
        number,
        endpoint: record.endpoint,
        started_at: time(record.started_at_ms),
        duration_ms: record.duration_ms,
        outcome,
        response_snippet: record.response_snippet,
        next_attempt_at: record.next_attempt_at_ms.map(time),
    })
}
