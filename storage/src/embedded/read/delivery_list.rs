//! Lists of a merchant's deliveries by state, event and payment, each from an index or from a bounded part of the log.

use engine::{
    ids::{DeliveryId, MerchantId},
    mutant,
    webhook::{Delivery, DeliveryRecord, DeliveryState},
};

use crate::{
    embedded::{fault::Fault, read::deliveries::delivery, tables::DeliveryKey, wal::snapshot::Snapshot},
    record::{self, codes::Code},
    store::{outbox::DeliveryQuery, page::Page},
};

/// Maximum number of deliveries that a page reads without returning them.
const READ_MAX: usize = 2_000;

/// Returns whether deliveries in a state have an index.
pub(crate) fn is_listed(state: DeliveryState) -> bool {
    state != DeliveryState::Delivered || mutant!("replay-includes-delivered")
}

/// A page under construction, to which deliveries are offered newest first.
struct Slice<'q> {
    query: &'q DeliveryQuery,
    found: Vec<DeliveryRecord>,
    passed: usize,
}

impl Slice<'_> {
    /// Adds a delivery if it matches; returns the page once it is complete or the read limit is reached.
    fn offer(&mut self, logged: DeliveryRecord) -> Option<Page<DeliveryRecord>> {
        let last = logged.delivery.id;
        let DeliveryQuery { merchant, limit, states, event, payment, endpoint, .. } = self.query;
        let is_wanted = logged.delivery.merchant == *merchant
            && (states.is_empty() || states.contains(&logged.state))
            && event.is_none_or(|event| logged.delivery.event == event)
            && payment.is_none_or(|payment| logged.delivery.payment == payment)
            && endpoint.is_none_or(|endpoint| logged.delivery.endpoint == endpoint);
        if !is_wanted {
            self.passed += 1;
            return (self.passed == READ_MAX).then(|| self.page(Some(last)));
        }
        if self.found.len() < *limit {
            self.found.push(logged);
            return None;
        }
        let next = self.found.last().map(|logged| logged.delivery.id);
        Some(self.page(next))
    }

    fn page(&mut self, next: Option<DeliveryId>) -> Page<DeliveryRecord> {
        Page { next: next.map(DeliveryId::bits), ..Page::of(std::mem::take(&mut self.found), 0) }
    }
}

/// Lists a merchant's deliveries, newest first, without a total.
pub(crate) fn deliveries(snapshot: &Snapshot, query: &DeliveryQuery) -> Result<Page<DeliveryRecord>, Fault> {
    let mut slice = Slice { query, found: Vec::new(), passed: 0 };
    let last = match query.before.map(DeliveryId::bits) {
        Some(0) => return Ok(slice.page(None)),
        before => before.map_or(u128::MAX, |id| id - 1),
    };
    let merchant = query.merchant.bits();
    let ids: Ids<'_> = match (query.event, query.payment) {
        (Some(event), _) => {
            let rows = snapshot.event_deliveries().range((event.bits(), 0)..=(event.bits(), last))?;
            Box::new(rows.rev().map(|row| Ok(row?.0.value().1)))
        }
        (None, Some(payment)) => {
            let rows = snapshot.payment_deliveries().range((payment.bits(), 0)..=(payment.bits(), last))?;
            Box::new(rows.rev().map(|row| Ok(row?.0.value().1)))
        }
        _ if !query.states.is_empty() && !query.states.contains(&DeliveryState::Delivered) => {
            let mut lists = Vec::new();
            for state in DeliveryState::ALL.into_iter().filter(|state| query.states.contains(state)) {
                lists.push(in_state(snapshot, merchant, state, (0, last))?.rev().peekable());
            }
            Box::new(merged(lists, |one, other| one > other))
        }
        _ => {
            let log = snapshot.deliveries();
            for row in log.range::<DeliveryKey>((merchant, 0)..=(merchant, last))?.rev() {
                let (key, bytes) = row?;
                let id = DeliveryId::from_bits(key.value().1);
                let read = record::delivery_from_bytes(key.value(), bytes.value());
                let Some(logged) = log.skip_damaged(read.map_err(Fault::damaged("deliveries", id)))? else { continue };
                if let Some(page) = slice.offer(logged) {
                    return Ok(page);
                }
            }
            return Ok(slice.page(None));
        }
    };
    for id in ids {
        let logged =
            snapshot.deliveries().skip_damaged(delivery(snapshot, query.merchant, DeliveryId::from_bits(id?)))?;
        if let Some(page) = logged.flatten().and_then(|logged| slice.offer(logged)) {
            return Ok(page);
        }
    }
    Ok(slice.page(None))
}

/// Returns at most `limit` of a merchant's deliveries after `after` that can be replayed, oldest first.
pub(crate) fn replayable(
    snapshot: &Snapshot,
    merchant: MerchantId,
    after: DeliveryId,
    limit: usize,
) -> Result<Vec<Delivery>, Fault> {
    let Some(first) = after.bits().checked_add(1) else { return Ok(Vec::new()) };
    let mut lists = Vec::new();
    for state in DeliveryState::ALL.into_iter().filter(|state| *state != DeliveryState::Pending && is_listed(*state)) {
        lists.push(in_state(snapshot, merchant.bits(), state, (first, u128::MAX))?.peekable());
    }
    let mut found = Vec::new();
    for id in merged(lists, |one, other| one < other) {
        if found.len() == limit {
            break;
        }
        let logged = snapshot.deliveries().skip_damaged(delivery(snapshot, merchant, DeliveryId::from_bits(id?)))?;
        found.extend(logged.flatten().filter(DeliveryRecord::is_replayable).map(|logged| logged.delivery));
    }
    Ok(found)
}

type Ids<'s> = Box<dyn Iterator<Item = Result<u128, Fault>> + 's>;

/// Returns a merchant's deliveries in a state other than delivered, in an inclusive range.
fn in_state(
    snapshot: &Snapshot,
    merchant: u128,
    state: DeliveryState,
    (first, last): (u128, u128),
) -> Result<impl DoubleEndedIterator<Item = Result<u128, Fault>>, Fault> {
    let rows = (merchant, state.number(), first)..=(merchant, state.number(), last);
    Ok(snapshot.undelivered().range::<(u128, u32, u128)>(rows)?.map(|row| Ok(row?.0.value().2)))
}

/// Merges lists; `is_before` returns whether one id precedes another. Faults come first.
fn merged<I: Iterator<Item = Result<u128, Fault>>>(
    mut lists: Vec<std::iter::Peekable<I>>,
    is_before: impl Fn(u128, u128) -> bool,
) -> impl Iterator<Item = Result<u128, Fault>> {
    std::iter::from_fn(move || {
        let mut first: Option<(usize, u128)> = None;
        for (at, list) in lists.iter_mut().enumerate() {
            match list.peek() {
                Some(Err(_)) => return list.next(),
                Some(Ok(id)) if first.is_none_or(|(_, known)| is_before(*id, known)) => first = Some((at, *id)),
                _ => {}
            }
        }
        first.and_then(|(at, _)| lists[at].next())
    })
}
