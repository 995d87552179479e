//! The outbox: pending deliveries, a queue for each endpoint, ordered by due time.
//!
//! The records of deliveries are in [`crate::embedded::tables::DELIVERIES`], where they remain as a log; the outbox and
//! its heads are indexes. One more index holds the earliest due time of every endpoint, so that finding due work does
//! not depend on the length of any queue.

use engine::{
    ids::{DeliveryId, EndpointId},
    mutant,
    time::Timestamp,
    webhook::{Attempt, Delivery, DeliveryRecord, DeliveryState, Trigger},
};

use crate::{
    batch::HoldReason,
    embedded::{
        commit::{
            group::{Checked, Group, Overlay, conflict},
            indexes,
            prepared::{DeliveryStep, EventStep},
        },
        fault::Fault,
        read::deliveries,
        tables::{DeliveryKey, OutboxKey, PendingKey},
    },
    record,
};

/// Maximum number of events that one commit deletes.
const MAX_PRUNED_EVENTS: usize = 1_000;

/// Returns the key of a delivery's record.
fn key_of(delivery: &Delivery) -> DeliveryKey {
    (delivery.merchant.bits(), delivery.id.bits())
}

/// Returns the key of a pending delivery in the outbox.
fn place_of(delivery: &Delivery) -> OutboxKey {
    (delivery.endpoint.bits(), delivery.due_at.millis(), delivery.event_seq, delivery.id.bits())
}

/// Returns the key of a pending delivery among those of its payment.
fn pending_of(delivery: &Delivery) -> PendingKey {
    (delivery.payment.bits(), delivery.endpoint.bits(), delivery.event_seq, delivery.id.bits())
}

/// Returns a delivery's record, including the changes of earlier steps of the batch.
fn logged(group: &mut Group<'_>, overlay: &Overlay, key: DeliveryKey) -> Result<Option<DeliveryRecord>, Fault> {
    match overlay.deliveries.get(&key) {
        Some(logged) => Ok(Some(logged.clone())),
        None => stored(group, key),
    }
}

fn stored(group: &mut Group<'_>, key: DeliveryKey) -> Result<Option<DeliveryRecord>, Fault> {
    let Some(bytes) = group.tables.deliveries().get(key)? else { return Ok(None) };
    record::delivery_from_bytes(key, bytes.value()).map(Some).map_err(Fault::damaged("deliveries", show(key)))
}

/// Rejects an event or a delivery whose id exists.
pub(crate) fn check_event(group: &mut Group<'_>, step: &EventStep, overlay: &mut Overlay) -> Checked {
    if overlay.events.contains(&step.id.bits()) || group.tables.event_ids().has(step.id.bits())? {
        return conflict(format_args!("event {}", step.id));
    }
    for delivery in step.deliveries(0) {
        let key = key_of(&delivery);
        if logged(group, overlay, key)?.is_some() {
            return conflict(format_args!("event {}", step.id));
        }
        overlay.deliveries.insert(key, DeliveryRecord::new(delivery));
    }
    overlay.events.insert(step.id.bits());
    Ok(Ok(()))
}

/// Rejects a step for a delivery that changed since it was read.
pub(crate) fn check_delivery(group: &mut Group<'_>, step: &DeliveryStep, overlay: &mut Overlay) -> Checked {
    let delivery = step.delivery();
    let key = key_of(delivery);
    let before = logged(group, overlay, key)?;
    let is_as_seen = match (&before, step) {
        (None, DeliveryStep::Redeliver(_)) => true,
        (Some(before), DeliveryStep::Replay { .. }) => before.is_replayable_since(delivery),
        (Some(before), DeliveryStep::Attempt { .. } | DeliveryStep::Hold { .. } | DeliveryStep::GiveUp(_)) => {
            before.is_unattempted_since(delivery)
        }
        _ => false,
    };
    if !is_as_seen {
        return conflict(format_args!("delivery {}", delivery.id));
    }
    if let DeliveryStep::Hold { reason, .. } = step
        && !applies(group, overlay, delivery, *reason)?
    {
        return conflict(format_args!("endpoint {}", delivery.endpoint));
    }
    overlay.deliveries.insert(key, after_step(step, before));
    Ok(Ok(()))
}

/// Returns whether a reason for holding a delivery applies.
fn applies(group: &Group<'_>, overlay: &Overlay, delivery: &Delivery, reason: HoldReason) -> Result<bool, Fault> {
    let Delivery { endpoint, merchant, .. } = *delivery;
    match reason {
        HoldReason::Disabled => {
            let health = deliveries::health(group.tables.snapshot(), endpoint)?;
            Ok(!health.is_enabled() && !overlay.enabled.contains(&endpoint.bits()) || mutant!("held-though-enabled"))
        }
        HoldReason::NoEndpoint { merchant_version } => {
            let stored = match overlay.merchants.get(&merchant.bits()) {
                Some(facts) => Some(facts.version),
                None => match group.tables.merchants().get(merchant.bits())? {
                    Some(bytes) => {
                        let facts = record::merchant_facts(bytes.value());
                        Some(facts.map_err(Fault::damaged("merchants", merchant))?.version)
                    }
                    None => None,
                },
            };
            Ok(stored == merchant_version)
        }
    }
}

/// Returns the record of a delivery after a step.
fn after_step(step: &DeliveryStep, before: Option<DeliveryRecord>) -> DeliveryRecord {
    let before = before.unwrap_or_else(|| DeliveryRecord::new(step.delivery().clone()));
    match step {
        DeliveryStep::Redeliver(delivery) => DeliveryRecord::new(delivery.clone()),
        DeliveryStep::Replay { at, .. } => before.replayed(*at),
        DeliveryStep::Attempt { attempt, .. } => before.after(attempt),
        DeliveryStep::Hold { .. } => before.held(),
        DeliveryStep::GiveUp(_) => before.given_up(),
    }
}

/// Appends an event to its merchant's list and inserts its deliveries into the outbox, due at once.
pub(crate) fn insert_event(group: &mut Group<'_>, event: &EventStep) -> Result<(), Fault> {
    let merchant = event.merchant.bits();
    let epoch = group.epoch()?;
    let tail = match group.event_tails.get(&merchant) {
        Some(tail) => *tail,
        None => deliveries::tail(group.tables.snapshot(), merchant, epoch)?,
    };
    let tail = tail.next(epoch);
    let seq = tail.last;
    group.event_tails.insert(merchant, tail);
    group.tables.events().insert((merchant, seq), event.record.as_slice());
    group.tables.event_ids().insert(event.id.bits(), (merchant, seq));
    group.tables.event_times().insert((event.at.millis(), event.id.bits()), ());
    event.deliveries(seq).try_for_each(|delivery| put(group, None, &DeliveryRecord::new(delivery)))
}

/// Applies a step of a delivery.
pub(crate) fn apply_delivery(group: &mut Group<'_>, step: &DeliveryStep) -> Result<(), Fault> {
    let delivery = step.delivery();
    let before = stored(group, key_of(delivery))?;
    if let Some(before) = before.as_ref().filter(|before| before.state == DeliveryState::Pending) {
        group.tables.outbox().remove(place_of(&before.delivery))?;
        group.queues.insert(before.delivery.endpoint.bits());
    }
    if let DeliveryStep::Attempt { attempt, key, record, .. } = step {
        group.tables.attempts().insert(*key, record.as_slice());
        update_endpoint(group, delivery, attempt)?;
    }
    let state_before = before.as_ref().map(|before| before.state);
    let mut after = after_step(step, before);
    if mutant!("delivered-stays-in-outbox") && after.state == DeliveryState::Delivered {
        after.state = DeliveryState::Pending;
        after.delivery.due_at = after.delivery.due_at + std::time::Duration::from_secs(60);
    }
    put(group, state_before, &after)
}

/// Writes a delivery's record, its index rows and, if it is pending, its outbox entry; `before` is its previous state.
fn put(group: &mut Group<'_>, before: Option<DeliveryState>, logged: &DeliveryRecord) -> Result<(), Fault> {
    indexes::list_delivery(group, before, logged)?;
    let delivery = &logged.delivery;
    group.tables.deliveries().insert(key_of(delivery), record::delivery_to_bytes(logged).as_slice());
    if logged.state == DeliveryState::Pending {
        if mutant!("event-without-delivery") && delivery.attempts == 0 {
            return Ok(());
        }
        group.tables.outbox().insert(place_of(delivery), delivery.merchant.bits());
        group.queues.insert(delivery.endpoint.bits());
        if delivery.trigger == Trigger::Auto {
            group.tables.pending_deliveries().insert(pending_of(delivery), ());
        }
    } else if delivery.trigger == Trigger::Auto {
        group.tables.pending_deliveries().remove(pending_of(delivery))?;
    }
    Ok(())
}

fn update_endpoint(group: &mut Group<'_>, delivery: &Delivery, attempt: &Attempt) -> Result<(), Fault> {
    let endpoints = group.tables.endpoints();
    // A damaged health record starts over.
    let before = deliveries::health(group.tables.snapshot(), delivery.endpoint)?;
    let after = before.after(delivery, attempt);
    endpoints.insert(delivery.endpoint.bits(), record::endpoint_to_bytes(&after).as_slice());
    Ok(())
}

/// Resets the health of an endpoint.
pub(crate) fn reset_endpoint(group: &mut Group<'_>, endpoint: EndpointId) -> Result<(), Fault> {
    group.tables.endpoints().remove(endpoint.bits())?;
    Ok(())
}

/// Writes the earliest due time of every changed queue.
pub(crate) fn write_heads(group: &mut Group<'_>) -> Result<(), Fault> {
    for endpoint in std::mem::take(&mut group.queues) {
        let queue = (endpoint, 0, 0, 0)..=(endpoint, u64::MAX, u64::MAX, u128::MAX);
        let first = group.tables.outbox().range(queue)?.next().transpose()?.map(|(key, _)| key.value().1);
        let heads = group.tables.outbox_heads();
        let before = match heads.skip_damaged(heads.get(endpoint))? {
            Some(before) => before.map(|due_ms| due_ms.value()),
            None => {
                remove_head(group, endpoint)?;
                None
            }
        };
        if first == before {
            continue;
        }
        if let Some(due_ms) = before {
            group.tables.outbox_due().remove((due_ms, endpoint))?;
        }
        match first {
            Some(due_ms) => {
                group.tables.outbox_heads().insert(endpoint, due_ms);
                group.tables.outbox_due().insert((due_ms, endpoint), ());
            }
            None => group.tables.outbox_heads().remove(endpoint)?,
        }
    }
    Ok(())
}

/// Removes the due times of a queue whose head is damaged.
fn remove_head(group: &mut Group<'_>, endpoint: u128) -> Result<(), Fault> {
    group.tables.outbox_heads().remove(endpoint)?;
    let due = group.tables.outbox_due();
    let mut places = Vec::new();
    for entry in due.iter()? {
        let place = entry?.0.value();
        if place.1 == endpoint {
            places.push(place);
        }
    }
    Ok(places.into_iter().try_for_each(|place| due.remove(place))?)
}

/// Deletes events that happened before `happened_before`, and the responses of receivers. The deliveries remain. An event whose
/// place cannot be read remains until it can.
pub(crate) fn prune(group: &mut Group<'_>, happened_before: Timestamp) -> Result<(), Fault> {
    let more = if mutant!("newer-events-deleted") { 300_000 } else { 0 };
    let end = (happened_before.millis() + more, 0);
    let mut old = Vec::new();
    for entry in group.tables.event_times().range(..end)? {
        let (at_ms, event) = entry?.0.value();
        if let Some(place) = group.tables.event_ids().get_intact(event)? {
            old.push((at_ms, event, place.value()));
        }
        if old.len() == MAX_PRUNED_EVENTS {
            break;
        }
    }
    for (at_ms, event, place) in old {
        group.tables.event_times().remove((at_ms, event))?;
        group.tables.events().remove(place)?;
        group.tables.event_ids().remove(event)?;
        let mut expired = Vec::new();
        for entry in group.tables.attempts().range((event, 0, 0)..=(event, u128::MAX, u32::MAX))? {
            let (key, bytes) = entry?;
            let key = key.value();
            let damaged = Fault::damaged("attempts", format!("{key:?}"));
            let read = record::attempt_from_bytes(key, bytes.value()).map_err(damaged);
            expired.extend(group.tables.attempts().skip_damaged(read)?.map(|attempt| (key, attempt)));
        }
        for (key, attempt) in expired.into_iter().filter(|_| !mutant!("responses-outlive-events")) {
            group.tables.attempts().insert(key, record::attempt_to_bytes(attempt.pruned()).as_slice());
        }
    }
    Ok(())
}

fn show((_, delivery): DeliveryKey) -> DeliveryId {
    DeliveryId::from_bits(delivery)
}
