//! Events and their deliveries.

use std::collections::BTreeMap;

use engine::{
    event_list::{Epoch, Tail},
    ids::EndpointId,
    time::Timestamp,
    webhook::{Attempt, Delivery, DeliveryRecord, DeliveryState, Trigger},
};

use crate::{
    batch::{EventRecord, HoldReason},
    duty::Duty,
    postgres::{
        commit::{
            business::epochs,
            working::{Checked, Queue, Working, conflict},
        },
        statement::Statement,
        tables::webhooks::{AttemptRow, DeliveryRow, EndpointRow, EventRow, ListRow},
        values::{Cell, Columns, Kind},
        whole::Shape,
    },
};

/// Events forgotten by one commit at most.
pub(crate) const MAX_PRUNED_EVENTS: i64 = 1_000;

/// A change of a delivery.
#[derive(Debug, Clone, Copy)]
pub(crate) enum DeliveryChange<'c> {
    Attempt(&'c Attempt),
    Hold,
    GiveUp,
    Redeliver,
    Replay(Timestamp),
}

/// Returns the key of a delivery.
pub(crate) fn key_of(delivery: &Delivery) -> (u128, u128) {
    (delivery.merchant.bits(), delivery.id.bits())
}

/// Appends an event to its merchant's list and puts its deliveries into the outbox, due at once.
pub(crate) fn insert_event(working: &mut Working, event: &EventRecord) -> Checked {
    let (merchant, id) = (event.merchant.bits(), event.id.bits());
    let is_known = working.event_ids.contains(&id) || working.events.iter().any(|(_, row)| row.id == id);
    let is_used = |id: u128| working.deliveries.get(&(merchant, id)).is_some();
    if is_known || event.deliveries.iter().any(|(_, delivery)| is_used(delivery.bits())) {
        return conflict(format_args!("event {}", event.id));
    }
    let epoch = epochs(working)?.last().copied().unwrap_or(Epoch::FIRST);
    let tail = working.lists.get(&merchant).map_or(Tail::EMPTY, |row| row.0).next(epoch);
    working.lists.put(merchant, ListRow(tail));
    working.events.put((merchant, tail.last), EventRow::of(event.clone()));
    for (endpoint, delivery) in &event.deliveries {
        let trigger = if event.is_test { Trigger::Test } else { Trigger::Auto };
        let delivery = Delivery {
            id: *delivery,
            event: event.id,
            event_seq: tail.last,
            merchant: event.merchant,
            endpoint: *endpoint,
            payment: event.payment,
            trigger,
            attempts: 0,
            schedule_from: 0,
            due_at: event.at,
        };
        working.deliveries.put(key_of(&delivery), DeliveryRow { version: 1, logged: DeliveryRecord::new(delivery) });
    }
    Ok(Ok(()))
}

/// Changes a delivery that is unchanged since it was read.
pub(crate) fn change_delivery(working: &mut Working, delivery: &Delivery, change: DeliveryChange<'_>) -> Checked {
    let key = key_of(delivery);
    let stored = working.deliveries.get(&key).cloned();
    let logged = stored.as_ref().map(|row| &row.logged);
    let is_as_seen = match (logged, change) {
        (None, DeliveryChange::Redeliver) => true,
        (Some(logged), DeliveryChange::Replay(_)) => logged.is_replayable_since(delivery),
        (Some(logged), DeliveryChange::Attempt(_) | DeliveryChange::Hold | DeliveryChange::GiveUp) => {
            logged.is_unattempted_since(delivery)
        }
        _ => false,
    };
    if !is_as_seen {
        return conflict(format_args!("delivery {}", delivery.id));
    }
    if let DeliveryChange::Attempt(attempt) = change {
        record_attempt(working, delivery, attempt);
    }
    let version = stored.as_ref().map_or(0, |row| row.version) + 1;
    let logged = after_change(delivery, change, stored.map(|row| row.logged));
    working.deliveries.put(key, DeliveryRow { version, logged });
    Ok(Ok(()))
}

/// Holds a delivery as long as the reason applies: the row that decides must be the same at the commit.
pub(crate) fn hold(working: &mut Working, delivery: &Delivery, reason: HoldReason) -> Checked {
    let (merchant, endpoint) = (delivery.merchant.bits(), delivery.endpoint.bits());
    let applies = match reason {
        HoldReason::Disabled => working.endpoints.get(&endpoint).is_some_and(|row| !row.health.is_enabled()),
        HoldReason::NoEndpoint { merchant_version } => {
            working.merchants.get(&merchant).map(|row| row.facts.version) == merchant_version
        }
    };
    let held = change_delivery(working, delivery, DeliveryChange::Hold)?;
    if held.is_ok() && !applies {
        return conflict(format_args!("endpoint {}", delivery.endpoint));
    }
    match reason {
        HoldReason::Disabled => working.endpoints.lock(endpoint),
        HoldReason::NoEndpoint { .. } => working.merchants.lock(merchant),
    }
    Ok(held)
}

/// Returns a delivery's record after a change.
fn after_change(delivery: &Delivery, change: DeliveryChange<'_>, before: Option<DeliveryRecord>) -> DeliveryRecord {
    let before = before.unwrap_or_else(|| DeliveryRecord::new(delivery.clone()));
    match change {
        DeliveryChange::Redeliver => DeliveryRecord::new(delivery.clone()),
        DeliveryChange::Replay(at) => before.replayed(at),
        DeliveryChange::Attempt(attempt) => before.after(attempt),
        DeliveryChange::Hold => before.held(),
        DeliveryChange::GiveUp => before.given_up(),
    }
}

fn record_attempt(working: &mut Working, delivery: &Delivery, attempt: &Attempt) {
    let key = (attempt.event.bits(), attempt.delivery.bits(), attempt.number);
    assert_eq!(
        (attempt.delivery, attempt.event, attempt.number),
        (delivery.id, delivery.event, delivery.attempts + 1),
        "an attempt is the next one of its own delivery"
    );
    working.attempts.put(key, AttemptRow(attempt.clone()));
    let endpoint = delivery.endpoint.bits();
    let EndpointRow { version, health } = working.endpoints.get(&endpoint).cloned().unwrap_or_default();
    working.endpoints.put(endpoint, EndpointRow { version: version + 1, health: health.after(delivery, attempt) });
}

/// Resets the health of an endpoint. Its row remains, so that its version is never repeated.
pub(crate) fn enable(working: &mut Working, endpoint: EndpointId) {
    if let Some(EndpointRow { version, .. }) = working.endpoints.get(&endpoint.bits()) {
        let row = EndpointRow { version: version + 1, ..EndpointRow::default() };
        working.endpoints.put(endpoint.bits(), row);
    }
}

/// Deletes events that happened earlier, and the responses of receivers. Their deliveries remain.
pub(crate) fn prune(working: &mut Working, happened_before: Timestamp) {
    let old = working.events.iter().filter(|(_, row)| row.happened_at < happened_before);
    let mut old: Vec<_> = old.map(|(key, row)| (row.happened_at, row.id, *key)).collect();
    old.sort_unstable();
    old.truncate(usize::try_from(MAX_PRUNED_EVENTS).unwrap_or(usize::MAX));
    for (_, event, key) in old {
        working.events.set(key, None);
        let attempts = working.attempts.range((event, 0, 0)..=(event, u128::MAX, u32::MAX));
        let attempts: Vec<_> = attempts.map(|(key, row)| (*key, row.0.clone())).collect();
        for (key, attempt) in attempts {
            working.attempts.put(key, AttemptRow(attempt.pruned()));
        }
    }
}

/// Writes when the first delivery of each changed queue is due. The written time is never too late: if another
/// writer changed the row in between, the earlier time stays.
pub(crate) fn write_heads(working: &Working, statement: &mut Statement) {
    let changed = working.deliveries.changes().filter_map(|(_, _, now)| now.map(|row| &row.logged.delivery));
    // In the order of the endpoints, so that two writers never wait for each other.
    let changed: BTreeMap<u128, u128> =
        changed.map(|delivery| (delivery.endpoint.bits(), delivery.merchant.bits())).collect();
    let mut unread = Columns::of(HEAD_SHAPE.columns().map(|(_, kind)| *kind));
    let mut read = Columns::of([Kind::Uuid, Kind::Integer, Kind::Time]);
    for (endpoint, merchant) in changed {
        let queue = working.queues.get(&endpoint);
        let Some(head) = head(working, (endpoint, merchant), queue) else { continue };
        match queue.and_then(|queue| queue.head.as_ref()) {
            Some(before) => read.push([endpoint.into(), before.version.into(), head.into()]),
            None => unread.push(head_cells(endpoint, merchant, head)),
        }
    }
    if unread.rows > 0 {
        statement.add(format_args!("outbox_heads_new"), UNREAD_HEADS, unread, None);
    }
    if read.rows > 0 {
        statement.add(format_args!("outbox_heads_changed"), READ_HEADS, read, None);
    }
}

const UNREAD_HEADS: &str = "INSERT INTO outbox_heads AS t (endpoint_id, merchant_id, bucket, version, due_at) \
     SELECT * FROM {unnest} ON CONFLICT (endpoint_id) DO UPDATE SET \
     version = t.version + 1, due_at = least(t.due_at, excluded.due_at)";

const READ_HEADS: &str = "UPDATE outbox_heads AS t SET version = t.version + 1, due_at = CASE \
     WHEN t.version = u.version THEN u.due_at ELSE least(t.due_at, u.due_at) END \
     FROM {unnest} AS u (endpoint_id, version, due_at) WHERE t.endpoint_id = u.endpoint_id";

/// The columns of the heads of queues.
pub(crate) const HEAD_SHAPE: Shape = Shape::new(
    "outbox_heads",
    &[("endpoint_id", Kind::Uuid)],
    &[("merchant_id", Kind::Uuid), ("bucket", Kind::Small), ("version", Kind::Integer), ("due_at", Kind::Time)],
);

/// Returns the first row of the head of a queue.
pub(crate) fn head_cells(endpoint: u128, merchant: u128, due_at: Timestamp) -> Vec<Cell> {
    vec![endpoint.into(), merchant.into(), Cell::Small(bucket_of(endpoint)), 1_u64.into(), due_at.into()]
}

/// Returns the bucket of an endpoint.
fn bucket_of(endpoint: u128) -> i16 {
    match Duty::webhooks_of(EndpointId::from_bits(endpoint)) {
        Duty::Webhooks(bucket) => bucket.into(),
        _ => 0,
    }
}

/// Returns when the first delivery of a queue is due; none if the queue neither gains a delivery nor was read.
fn head(working: &Working, (endpoint, merchant): (u128, u128), queue: Option<&Queue>) -> Option<Timestamp> {
    let waiting = working.deliveries.changes().filter_map(|(_, _, now)| {
        let DeliveryRecord { delivery, state, .. } = &now?.logged;
        let is_waiting = delivery.endpoint.bits() == endpoint && *state == DeliveryState::Pending;
        is_waiting.then_some(delivery.due_at)
    });
    let earliest = waiting.min();
    let Some(queue) = queue else { return earliest };
    let is_changed = |id: u128| working.deliveries.is_changed(&(merchant, id));
    let rest = queue.first.iter().filter(|(_, id)| !is_changed(*id)).map(|(due_at, _)| *due_at);
    Some(rest.chain(earliest).min().unwrap_or(Timestamp::MAX))
}
