//! Reads of events and deliveries: due work, event lists, attempts.

use std::collections::BTreeSet;

use engine::{
    event_list::{Epoch, EventList, Tail},
    ids::{DeliveryId, EndpointId, EventId, MerchantId},
    time::Timestamp,
    webhook::{Attempt, Delivery, DeliveryRecord, EndpointHealth, Trigger},
};

use crate::{
    batch::EventRecord,
    embedded::{
        fault::Fault,
        read::merchants,
        tables::{DeliveryKey, OutboxKey, meta},
        wal::{single, snapshot::Snapshot, view::View},
    },
    record::{self, checked::Text, vault::Vault},
    store::outbox::{Due, DueWork, Passed},
};

/// Maximum number of due queues whose next due time is read.
const MAX_QUEUES_READ: usize = 64;

/// Returns due deliveries of at most `endpoints` endpoints, at most `per_endpoint` of each, without the `passed` ones.
/// The endpoint with the earliest due delivery comes first.
pub(crate) fn due_work(
    snapshot: &Snapshot,
    now: Timestamp,
    endpoints: usize,
    per_endpoint: usize,
    passed: &Passed,
    vault: &Vault,
) -> Result<Vec<DueWork>, Fault> {
    let pending_deliveries = snapshot.pending_deliveries();
    let (mut work, mut found) = (Vec::new(), 0);
    for entry in snapshot.outbox_due().range(..=(now.millis(), u128::MAX))? {
        let endpoint = EndpointId::from_bits(entry?.0.value().1);
        if passed.endpoints.contains(&endpoint) || !passed.buckets.has_endpoint(endpoint) {
            continue;
        }
        if found == endpoints {
            break;
        }
        let Some(merchant) = owner(snapshot, endpoint)? else { continue };
        let mut deliveries = Vec::new();
        for delivery in waiting(snapshot, endpoint, now, per_endpoint, &passed.deliveries)? {
            let (payment, to) = (delivery.payment.bits(), endpoint.bits());
            let earlier = (payment, to, 0, 0)..(payment, to, delivery.event_seq, 0);
            let follows =
                delivery.trigger == Trigger::Auto && pending_deliveries.range(earlier)?.next().transpose()?.is_some();
            deliveries.push(Due { delivery, follows });
        }
        // A queue without a deliverable entry does not count toward `endpoints`.
        found += usize::from(!deliveries.is_empty());
        let record = snapshot.merchants().skip_damaged(merchants::merchant(snapshot, merchant, vault))?.flatten();
        work.push(DueWork { endpoint, merchant, record, health: health(snapshot, endpoint)?, deliveries });
    }
    Ok(work)
}

/// Returns at most `limit` deliveries that are due at or before `now`, earliest first.
pub(crate) fn due(snapshot: &Snapshot, now: Timestamp, limit: usize) -> Result<Vec<Delivery>, Fault> {
    let mut due = Vec::new();
    for entry in snapshot.outbox_due().range(..=(now.millis(), u128::MAX))? {
        let endpoint = EndpointId::from_bits(entry?.0.value().1);
        due.extend(waiting(snapshot, endpoint, now, limit, &BTreeSet::new())?);
    }
    due.sort_by_key(|delivery| (delivery.due_at, delivery.event, delivery.id));
    due.truncate(limit);
    Ok(due)
}

/// Returns the earliest due time after `now`.
pub(crate) fn next_due(snapshot: &Snapshot, now: Timestamp) -> Result<Option<Timestamp>, Fault> {
    let Some(later) = now.millis().checked_add(1) else { return Ok(None) };
    let (outbox, queues) = (snapshot.outbox(), snapshot.outbox_due());
    let mut next = queues.range((later, 0)..)?.next().transpose()?.map(|(key, _)| key.value().0);
    // A queue with due deliveries may also have later ones. With many such queues the dispatcher polls often anyway.
    for entry in queues.range(..(later, 0))?.take(MAX_QUEUES_READ) {
        let endpoint = entry?.0.value().1;
        let rest = (endpoint, later, 0, 0)..=(endpoint, u64::MAX, u64::MAX, u128::MAX);
        let first = outbox.range(rest)?.next().transpose()?.map(|(key, _)| key.value().1);
        next = next.into_iter().chain(first).min();
    }
    Ok(next.map(Timestamp::from_millis))
}

/// Returns the merchant of an endpoint with pending deliveries.
pub(crate) fn owner(snapshot: &Snapshot, endpoint: EndpointId) -> Result<Option<MerchantId>, Fault> {
    let queue = (endpoint.bits(), 0, 0, 0)..=(endpoint.bits(), u64::MAX, u64::MAX, u128::MAX);
    let first = snapshot.outbox().range::<OutboxKey>(queue)?.next().transpose()?;
    Ok(first.map(|(_, merchant)| MerchantId::from_bits(merchant.value())))
}

/// Returns an endpoint's due deliveries, earliest first, without the `known` ones.
fn waiting(
    snapshot: &Snapshot,
    endpoint: EndpointId,
    now: Timestamp,
    limit: usize,
    known: &BTreeSet<DeliveryId>,
) -> Result<Vec<Delivery>, Fault> {
    let log = snapshot.deliveries();
    let endpoint = endpoint.bits();
    let queue = (endpoint, 0, 0, 0)..=(endpoint, now.millis(), u64::MAX, u128::MAX);
    let mut waiting = Vec::new();
    for entry in snapshot.outbox().range::<OutboxKey>(queue)? {
        if waiting.len() == limit {
            break;
        }
        let (key, merchant) = entry?;
        let (_, due_ms, _, id) = key.value();
        if known.contains(&DeliveryId::from_bits(id)) {
            continue;
        }
        // A damaged delivery stays in the queue until it is repaired; the ones after it are sent.
        waiting.extend(log.skip_damaged(in_queue(snapshot, (merchant.value(), id), due_ms))?);
    }
    Ok(waiting)
}

/// Returns the delivery of an outbox entry.
fn in_queue(snapshot: &Snapshot, key: DeliveryKey, due_ms: u64) -> Result<Delivery, Fault> {
    let wrong = |why| Fault::inconsistent("outbox", DeliveryId::from_bits(key.1), why);
    let bytes = snapshot.deliveries().get(key)?.ok_or_else(|| wrong("it has no record"))?;
    let logged = read(key, bytes.value())?;
    if logged.delivery.due_at.millis() != due_ms {
        return Err(wrong("its record has another due time"));
    }
    Ok(logged.delivery)
}

fn read(key: DeliveryKey, bytes: &[u8]) -> Result<DeliveryRecord, Fault> {
    record::delivery_from_bytes(key, bytes).map_err(Fault::damaged("deliveries", DeliveryId::from_bits(key.1)))
}

/// Returns the health of an endpoint.
pub(crate) fn health(snapshot: &Snapshot, endpoint: EndpointId) -> Result<EndpointHealth, Fault> {
    let table = snapshot.endpoints();
    let Some(bytes) = table.get_intact(endpoint.bits())? else { return Ok(EndpointHealth::default()) };
    let read = record::endpoint_from_bytes(bytes.value()).map_err(Fault::damaged("endpoints", endpoint));
    Ok(table.skip_damaged(read)?.unwrap_or_default())
}

/// Returns the epochs and the end of a merchant's list of events.
pub(crate) fn event_list(snapshot: &Snapshot, merchant: u128) -> Result<EventList, Fault> {
    let epochs = epochs(&snapshot.meta())?;
    let current = epochs.last().copied().unwrap_or(Epoch::FIRST);
    Ok(EventList { tail: tail(snapshot, merchant, current)?, epochs })
}

/// Returns the epochs of the store after the first.
pub(crate) fn epochs(names: &View<'_, Text, &'static [u8]>) -> Result<Vec<Epoch>, Fault> {
    let Some(bytes) = single::read(names, meta::EPOCHS)? else { return Ok(Vec::new()) };
    record::epochs_from_bytes(&bytes).map_err(Fault::damaged(meta::TABLE, meta::EPOCHS))
}

/// Returns the current epoch.
pub(crate) fn epoch(names: &View<'_, Text, &'static [u8]>) -> Result<Epoch, Fault> {
    Ok(epochs(names)?.last().copied().unwrap_or(Epoch::FIRST))
}

/// Returns the end of a merchant's list of events. If its row is damaged, the last number is derived from the newest
/// event and the newest delivery, and existing cursors start from the beginning.
pub(crate) fn tail(snapshot: &Snapshot, merchant: u128, current: Epoch) -> Result<Tail, Fault> {
    let places = snapshot.event_seqs();
    if let Some(stored) = places.skip_damaged(places.get(merchant))? {
        return Ok(stored.map_or(Tail::EMPTY, |stored| {
            let (last, epoch, before) = stored.value();
            Tail { last, epoch: Epoch::from_bits(epoch), last_before_epoch: before }
        }));
    }
    let event = snapshot.events().range((merchant, 0)..=(merchant, u64::MAX))?.next_back().transpose()?;
    let log = snapshot.deliveries();
    let delivery = log.range::<DeliveryKey>((merchant, 0)..=(merchant, u128::MAX))?.next_back().transpose()?;
    let delivery = match &delivery {
        Some((key, bytes)) => log.skip_damaged(read(key.value(), bytes.value()))?,
        None => None,
    };
    let places =
        event.map(|(key, _)| key.value().1).into_iter().chain(delivery.map(|logged| logged.delivery.event_seq));
    Ok(Tail { last: places.max().unwrap_or(0), epoch: current, last_before_epoch: 0 })
}

/// Returns a merchant's delivery.
pub(crate) fn delivery(
    snapshot: &Snapshot,
    merchant: MerchantId,
    id: DeliveryId,
) -> Result<Option<DeliveryRecord>, Fault> {
    let key = (merchant.bits(), id.bits());
    match snapshot.deliveries().get(key)? {
        Some(bytes) => read(key, bytes.value()).map(Some),
        None => Ok(None),
    }
}

/// Returns at most `limit` of a merchant's events after `after`, in order.
pub(crate) fn events(
    snapshot: &Snapshot,
    merchant: MerchantId,
    after: u64,
    limit: usize,
) -> Result<Vec<EventRecord>, Fault> {
    let Some(first) = after.checked_add(1) else { return Ok(Vec::new()) };
    let merchant = merchant.bits();
    let table = snapshot.events();
    let mut found = Vec::new();
    for entry in table.range((merchant, first)..=(merchant, u64::MAX))? {
        if found.len() == limit {
            break;
        }
        let (key, bytes) = entry?;
        let key = key.value();
        let read = record::event_from_bytes(key, bytes.value()).map_err(Fault::damaged("events", format!("{key:?}")));
        found.extend(table.skip_damaged(read)?);
    }
    Ok(found)
}

/// Returns an event by its position in the merchant's list.
pub(crate) fn event(snapshot: &Snapshot, merchant: MerchantId, seq: u64) -> Result<Option<EventRecord>, Fault> {
    let key = (merchant.bits(), seq);
    let damaged = Fault::damaged("events", format!("{seq} of {merchant}"));
    let bytes = snapshot.events().get(key)?;
    bytes.map(|bytes| record::event_from_bytes(key, bytes.value())).transpose().map_err(damaged)
}

/// Returns the merchant of an event, and the event's position in the merchant's list.
pub(crate) fn event_place(snapshot: &Snapshot, event: EventId) -> Result<Option<(MerchantId, u64)>, Fault> {
    let place = snapshot.event_ids().get(event.bits())?;
    Ok(place.map(|place| (MerchantId::from_bits(place.value().0), place.value().1)))
}

/// Returns when the oldest stored event happened.
pub(crate) fn oldest_event(snapshot: &Snapshot) -> Result<Option<Timestamp>, Fault> {
    let times = snapshot.event_times();
    let oldest = times.first()?;
    Ok(oldest.map(|(time, _)| Timestamp::from_millis(time.value().0)))
}

/// Returns the attempts made to deliver an event, in order.
pub(crate) fn attempts(snapshot: &Snapshot, event: EventId) -> Result<Vec<Attempt>, Fault> {
    let event = event.bits();
    let table = snapshot.attempts();
    let mut found = Vec::new();
    for entry in table.range((event, 0, 0)..=(event, u128::MAX, u32::MAX))? {
        let (key, bytes) = entry?;
        let key = key.value();
        let read =
            record::attempt_from_bytes(key, bytes.value()).map_err(Fault::damaged("attempts", format!("{key:?}")));
        found.extend(table.skip_damaged(read)?);
    }
    Ok(found)
}
