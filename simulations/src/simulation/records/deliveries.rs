//! Deliveries, their attempts, their lists and the outbox, compared with the model.

use super::*;

pub(super) async fn delivery_difference(
    store: &EmbeddedStore,
    model: &StoreModel,
    (first, count): (usize, usize),
) -> Result<Difference, ReadError> {
    for expected in model.deliveries.values().skip(first).take(count) {
        let Delivery { merchant, id, event, payment, endpoint, .. } = expected.delivery;
        if store.delivery(merchant, id).await?.as_ref() != Some(expected) {
            return Ok(Some(format!("delivery {id} should be {expected:?}")));
        }
        if let Some(text) = attempt_difference(store, model, event).await? {
            return Ok(Some(text));
        }
        let query = DeliveryQuery {
            merchant,
            before: None,
            limit: SAMPLE,
            states: vec![expected.state],
            event: None,
            payment: Some(payment),
            endpoint: None,
        };
        for query in [
            DeliveryQuery { payment: None, ..query.clone() },
            query.clone(),
            DeliveryQuery { event: Some(event), ..query.clone() },
            DeliveryQuery { payment: None, endpoint: Some(endpoint), ..query },
        ] {
            if let Some(text) = delivery_list_difference(store, model, query).await? {
                return Ok(Some(text));
            }
        }
    }
    queue_difference(store, model).await
}

async fn delivery_list_difference(
    store: &EmbeddedStore,
    model: &StoreModel,
    query: DeliveryQuery,
) -> Result<Difference, ReadError> {
    let found = store.deliveries(query.clone()).await?.items;
    let is_wanted = |record: &&engine::webhook::DeliveryRecord| {
        record.delivery.merchant == query.merchant
            && query.states.contains(&record.state)
            && query.payment.is_none_or(|payment| payment == record.delivery.payment)
            && query.event.is_none_or(|event| event == record.delivery.event)
            && query.endpoint.is_none_or(|endpoint| endpoint == record.delivery.endpoint)
    };
    let expected: Vec<_> = model.deliveries.values().rev().filter(is_wanted).take(query.limit).collect();
    Ok((!found.iter().eq(expected.iter().copied()))
        .then(|| format!("{query:?} lists {} deliveries and should list {}", found.len(), expected.len())))
}

async fn attempt_difference(
    store: &EmbeddedStore,
    model: &StoreModel,
    event: EventId,
) -> Result<Difference, ReadError> {
    let stored = store.attempts(event).await?;
    let first = engine::ids::DeliveryId::from_bits(0);
    let last = engine::ids::DeliveryId::from_bits(u128::MAX);
    let expected: Vec<_> =
        model.attempts.range((event, first, 0)..=(event, last, u32::MAX)).map(|(_, one)| one).collect();
    // What receivers responded is deleted with the event, and the rest of the record is kept. An attempt that is under way
    // meanwhile may be recorded whole.
    let is_deleted = store.event_place(event).await?.is_none();
    let deleted_since = model.prunable.get(&event).filter(|_| is_deleted);
    let is_same = |(stored, (expected, number)): (&Attempt, &&(Attempt, u64))| {
        let (request_headers, response_snippet) = (Vec::new(), String::new());
        let pruned = Attempt { request_headers, response_snippet, ..expected.clone() };
        match deleted_since {
            None => *stored == *expected,
            Some(since) if number < since => *stored == pruned,
            Some(_) => *stored == *expected || *stored == pruned,
        }
    };
    let is_right = stored.len() == expected.len() && stored.iter().zip(&expected).all(is_same);
    Ok((!is_right).then(|| format!("event {event} has {} attempts: {stored:?}, not {expected:?}", stored.len())))
}

/// Compares the outbox: what is due, what is due next, and what may be replayed.
async fn queue_difference(store: &EmbeddedStore, model: &StoreModel) -> Result<Difference, ReadError> {
    let pending = model.deliveries.values().filter(|record| record.state == DeliveryState::Pending);
    let mut expected: Vec<_> = pending.map(|record| record.delivery.clone()).collect();
    expected.sort_by_key(|delivery| (delivery.due_at, delivery.event, delivery.id));
    let stored = store.due_deliveries(Timestamp::MAX, usize::MAX).await?;
    if stored != expected {
        return Ok(Some(format!("{} deliveries are in the outbox, and {} should be", stored.len(), expected.len())));
    }
    if let Some(middle) = expected.get(expected.len() / 2) {
        let now = middle.due_at;
        let due = store.due_deliveries(now, usize::MAX).await?;
        let expected_due: Vec<_> = expected.iter().filter(|delivery| delivery.due_at <= now).cloned().collect();
        let next = store.next_delivery_after(now).await?;
        let expected_next = expected.iter().map(|delivery| delivery.due_at).filter(|at| *at > now).min();
        if due != expected_due || next != expected_next {
            return Ok(Some(format!("{} deliveries are due at {now}, the next at {next:?}", due.len())));
        }
    }
    let merchants: BTreeSet<_> = model.deliveries.values().map(|record| record.delivery.merchant).collect();
    for merchant in merchants {
        let stored = store.replayable(merchant, engine::ids::DeliveryId::from_bits(0), usize::MAX).await?;
        let own = model.deliveries.values().filter(|record| record.delivery.merchant == merchant);
        let expected: Vec<_> =
            own.filter(|record| StoreModel::is_replayable(record)).map(|record| record.delivery.clone()).collect();
        if stored != expected {
            return Ok(Some(format!("{} deliveries may be replayed, and {} should", stored.len(), expected.len())));
        }
    }
    Ok(None)
}
