//! The outbox: events wait here for their deliveries, ordered by when the next attempt is due.

use engine::{
    ids::{EventId, MerchantId},
    mutant,
    time::Timestamp,
    webhook::{Attempt, Delivery},
};
use redb::{ReadTransaction, ReadableTable};

use crate::{
    apply::{Ahead, Group},
    batch::EventRecord,
    fault::Fault,
    prepared::EventStep,
    record,
    tables::{ATTEMPTS, EVENTS, OUTBOX, OutboxKey},
};

/// Appends an event to its merchant's list and puts its delivery into the outbox, due at once.
pub(crate) fn announce(group: &mut Group<'_>, event: &EventStep) -> Result<(), Fault> {
    let merchant = event.merchant.bits();
    let last = match group.event_seqs.get(&merchant) {
        Some(last) => *last,
        None => group.tables.event_seqs()?.get(merchant)?.map_or(0, |last| last.value()),
    };
    let seq = last + 1;
    group.event_seqs.insert(merchant, seq);
    group.tables.events()?.insert((merchant, seq), event.record.as_slice())?;
    let delivery = Delivery {
        id: event.delivery,
        event: event.id,
        event_seq: seq,
        merchant: event.merchant,
        payment: event.payment,
        attempts: 0,
        due_at: event.at,
    };
    if !mutant!("event-without-delivery") {
        group.tables.outbox()?.insert(event.outbox_key(), record::delivery_to_bytes(&delivery).as_slice())?;
    }
    Ok(())
}

/// Takes a delivery out of its place and, if it is due again, puts it where it is due next.
pub(crate) fn move_on(group: &mut Group<'_>, key: OutboxKey, next_due_ms: Option<u64>) -> Result<(), Fault> {
    let outbox = group.tables.outbox()?;
    let mut delivery = match outbox.remove(key)? {
        Some(bytes) => record::delivery_from_bytes(key, bytes.value()).map_err(Fault::damaged("outbox", show(key)))?,
        None => return Err(Fault::contradicted("outbox", show(key), "it was checked and is gone")),
    };
    if mutant!("delivered-stays") && next_due_ms.is_none() {
        outbox.insert((key.0 + 60_000, key.1, key.2), record::delivery_to_bytes(&delivery).as_slice())?;
    }
    if let Some(due_ms) = next_due_ms {
        delivery.attempts += 1;
        let next = (due_ms, key.1, key.2);
        outbox.insert(next, record::delivery_to_bytes(&delivery).as_slice())?;
    }
    Ok(())
}

/// Returns how often the delivery in this place was attempted; none if there is none.
pub(crate) fn attempts_of(group: &mut Group<'_>, ahead: &Ahead, key: OutboxKey) -> Result<Option<u32>, Fault> {
    if let Some(attempts) = ahead.outbox.get(&key) {
        return Ok(*attempts);
    }
    let Some(bytes) = group.tables.outbox()?.get(key)? else { return Ok(None) };
    let delivery = record::delivery_from_bytes(key, bytes.value()).map_err(Fault::damaged("outbox", show(key)))?;
    Ok(Some(delivery.attempts))
}

/// Returns deliveries due at or before `now`, earliest first, at most `limit`.
pub(crate) fn due(snapshot: &ReadTransaction, now: Timestamp, limit: usize) -> Result<Vec<Delivery>, Fault> {
    let last = (now.millis(), u128::MAX, u128::MAX);
    snapshot
        .open_table(OUTBOX)?
        .range(..=last)?
        .take(limit)
        .map(|entry| {
            let (key, bytes) = entry?;
            let key = key.value();
            record::delivery_from_bytes(key, bytes.value()).map_err(Fault::damaged("outbox", show(key)))
        })
        .collect()
}

/// Returns when the first delivery that is not due at `now` will be.
pub(crate) fn next_due(snapshot: &ReadTransaction, now: Timestamp) -> Result<Option<Timestamp>, Fault> {
    let outbox = snapshot.open_table(OUTBOX)?;
    let later = (now.millis().saturating_add(1), 0, 0);
    let next = outbox.range(later..)?.next().transpose()?;
    Ok(next.map(|(key, _)| Timestamp::from_millis(key.value().0)))
}

/// Returns a merchant's events after `after`, in order, at most `limit`.
pub(crate) fn events(
    snapshot: &ReadTransaction,
    merchant: MerchantId,
    after: u64,
    limit: usize,
) -> Result<Vec<EventRecord>, Fault> {
    let Some(first) = after.checked_add(1) else { return Ok(Vec::new()) };
    let merchant = merchant.bits();
    snapshot
        .open_table(EVENTS)?
        .range((merchant, first)..=(merchant, u64::MAX))?
        .take(limit)
        .map(|entry| {
            let (key, bytes) = entry?;
            let key = key.value();
            record::event_from_bytes(key, bytes.value()).map_err(Fault::damaged("events", format!("{key:?}")))
        })
        .collect()
}

/// Returns the attempts made to deliver an event, in order.
pub(crate) fn attempts(snapshot: &ReadTransaction, event: EventId) -> Result<Vec<Attempt>, Fault> {
    let event = event.bits();
    snapshot
        .open_table(ATTEMPTS)?
        .range((event, 0, 0)..=(event, u128::MAX, u32::MAX))?
        .map(|entry| {
            let (key, bytes) = entry?;
            let key = key.value();
            record::attempt_from_bytes(key, bytes.value()).map_err(Fault::damaged("attempts", format!("{key:?}")))
        })
        .collect()
}

fn show((due_ms, event, _): OutboxKey) -> String {
    format!("{} due at {}", EventId::from_bits(event), Timestamp::from_millis(due_ms))
}
