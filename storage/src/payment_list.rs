//! The list of a merchant's payments: a page, and how many there are, for a bounded number of rows.

use std::collections::BTreeSet;

use engine::{
    ids::PaymentId,
    payment::{Payment, State},
};

use crate::{
    days::{self, Tally},
    fault::Fault,
    listed::{self, Facets, Ids},
    query::{Page, PageAt, PaymentQuery},
    record::{self, Code, Summary},
    search::{self, Wanted},
    snapshot::Snapshot,
};

/// Where a list must be read to be counted, it is counted up to so many.
const COUNTED_MAX: u64 = 10_000;
/// Rows that are looked at for those that a filter without an index keeps.
const LOOKED_AT_MAX: u64 = 10_000;

/// Lists a merchant's payments.
pub(crate) fn payments(snapshot: &Snapshot, query: &PaymentQuery) -> Result<Page<Payment>, Fault> {
    let facets = Facets::of(query);
    let ids = listed::ids_made(query.from, query.to);
    let has_amounts = query.min_units.is_some() || query.max_units.is_some();
    let slice = match chosen(snapshot, query)? {
        Some(chosen) => among(snapshot, query, facets, ids, chosen)?,
        None if has_amounts => scanned(snapshot, query, facets, ids)?,
        None => indexed(snapshot, query, facets, ids)?,
    };
    let Slice { found, total, total_is_lower_bound, next, .. } = slice;
    let records = snapshot.payments();
    let load = |id| {
        let key = PaymentId::from_bits(id);
        let bytes =
            records.get(id)?.ok_or_else(|| Fault::contradicted("payments", key, "it is listed and not there"))?;
        record::payment_from_bytes(key, bytes.value()).map_err(Fault::damaged("payments", key))
    };
    // The others are shown without one that cannot be read.
    let items = found.into_iter().filter_map(|id| records.pass(load(id)).transpose()).collect::<Result<_, Fault>>()?;
    Ok(Page { items, total, total_is_lower_bound, next })
}

/// A page being cut out of a list that is offered newest first.
struct Slice {
    limit: usize,
    /// Items that stand before the page and are still to come.
    skipped: u64,
    is_counted: bool,
    found: Vec<u128>,
    next: Option<u128>,
    total: u64,
    total_is_lower_bound: bool,
}

impl Slice {
    fn of(query: &PaymentQuery) -> Self {
        let skipped = match query.at {
            PageAt::Number(number) => number.saturating_sub(1).saturating_mul(query.limit as u64),
            PageAt::After(_) | PageAt::Following(_) => 0,
        };
        Self {
            limit: query.limit,
            skipped,
            is_counted: matches!(query.at, PageAt::Number(_)),
            found: Vec::new(),
            next: None,
            total: 0,
            total_is_lower_bound: false,
        }
    }

    /// Takes an item of the list.
    fn offer(&mut self, id: u128) {
        self.total += u64::from(self.is_counted);
        if self.skipped > 0 {
            self.skipped -= 1;
        } else if self.found.len() < self.limit {
            self.found.push(id);
        } else if self.next.is_none() {
            // There is more.
            self.next = self.found.last().copied();
        }
    }

    /// Says whether the page is full, and whether more follows is known.
    const fn is_full(&self) -> bool {
        self.next.is_some()
    }

    /// Says whether nothing that follows is asked for.
    const fn is_settled(&self) -> bool {
        self.is_full() && (!self.is_counted || self.total > COUNTED_MAX)
    }

    /// Ends where there may be more after `last`, the last item that was looked at.
    fn stop(&mut self, last: u128) {
        // What stands before a page by number was not all passed: nothing leads to that page.
        self.next = self.next.or(Some(last)).filter(|_| self.skipped == 0);
        self.total_is_lower_bound = self.is_counted;
        self.total = self.total.min(COUNTED_MAX);
    }
}

/// Returns the ids of a list that stand at or after the place where the page may start.
fn from_cursor(query: &PaymentQuery, ids: Ids) -> Ids {
    match query.at {
        PageAt::Number(_) | PageAt::After(u128::MAX) | PageAt::Following(u128::MAX) => ids,
        PageAt::After(0) | PageAt::Following(0) => listed::NO_ID,
        PageAt::After(id) | PageAt::Following(id) => *ids.start()..=*ids.end().min(&(id - 1)),
    }
}

/// Lists what the index lists: nothing is read that is not on the page, but for the summaries of one day.
fn indexed(snapshot: &Snapshot, query: &PaymentQuery, facets: Facets, ids: Ids) -> Result<Slice, Fault> {
    let merchant = query.merchant.bits();
    let mut slice = Slice::of(query);
    let mut ids = from_cursor(query, ids);
    let is_counted = std::mem::replace(&mut slice.is_counted, false);
    let by_state = if is_counted && slice.skipped == 0 { counted(snapshot, query)? } else { None };
    let tally = match by_state {
        Some(total) => {
            slice.total = total;
            Tally::default()
        }
        None if is_counted => days::tally(snapshot, merchant, facets, &ids, COUNTED_MAX)?,
        None => Tally::default(),
    };
    if is_counted && by_state.is_none() {
        (slice.total, slice.total_is_lower_bound) = (tally.total(), tally.is_lower_bound());
        if slice.skipped >= slice.total && !slice.total_is_lower_bound {
            return Ok(slice);
        }
        let (last, skipped) = tally.after(slice.skipped);
        slice.skipped = skipped;
        ids = *ids.start()..=*ids.end().min(&last);
    }
    for listed in listed::newest(snapshot, merchant, facets, ids)? {
        slice.offer(listed?.0);
        if slice.is_full() {
            break;
        }
    }
    Ok(slice)
}

/// Lists what must be looked at, one by one.
fn scanned(snapshot: &Snapshot, query: &PaymentQuery, facets: Facets, ids: Ids) -> Result<Slice, Fault> {
    let mut slice = Slice::of(query);
    let mut looked_at = 0;
    for listed in listed::newest(snapshot, query.merchant.bits(), facets, from_cursor(query, ids))? {
        let (id, summary) = listed?;
        if is_of_amount(query, &summary) {
            slice.offer(id);
            if slice.is_settled() {
                slice.stop(id);
                break;
            }
        }
        looked_at += 1;
        if looked_at >= LOOKED_AT_MAX {
            slice.stop(id);
            break;
        }
    }
    Ok(slice)
}

/// Lists what ids and words leave.
fn among(
    snapshot: &Snapshot,
    query: &PaymentQuery,
    facets: Facets,
    ids: Ids,
    chosen: BTreeSet<u128>,
) -> Result<Slice, Fault> {
    let mut slice = Slice::of(query);
    let ids = from_cursor(query, ids);
    for id in chosen.into_iter().rev().filter(|id| ids.contains(id)) {
        let summary = listed::one(snapshot, query.merchant.bits(), facets, id)?;
        if summary.is_some_and(|summary| is_of_amount(query, &summary)) {
            slice.offer(id);
        }
        if slice.is_settled() {
            slice.stop(id);
            break;
        }
    }
    Ok(slice)
}

/// Returns the payments that ids and words leave; none where neither is asked for.
fn chosen(snapshot: &Snapshot, query: &PaymentQuery) -> Result<Option<BTreeSet<u128>>, Fault> {
    let found = match query.query.as_deref().and_then(Wanted::parse) {
        Some(wanted) => Some(search::find(snapshot, query.merchant.bits(), &wanted)?),
        None => None,
    };
    if query.ids.is_empty() {
        return Ok(found);
    }
    let mut ids: BTreeSet<u128> = query.ids.iter().map(|id| id.bits()).collect();
    if let Some(found) = found {
        ids.retain(|id| found.contains(id));
    }
    Ok(Some(ids))
}

/// Returns how many payments a list has, where the counts by state can tell.
fn counted(snapshot: &Snapshot, query: &PaymentQuery) -> Result<Option<u64>, Fault> {
    let PaymentQuery { merchant, states, from: None, to: None, currency: None, unusual: None, .. } = query else {
        return Ok(None);
    };
    let counts = snapshot.payment_counts();
    let mut total = 0;
    for state in State::ALL {
        if states.is_empty() || states.contains(&state) {
            match counts.pass(counts.get((merchant.bits(), state.number())))? {
                Some(count) => total += count.map_or(0, |count| count.value()),
                // Those that are listed are counted.
                None => return Ok(None),
            }
        }
    }
    Ok(Some(total))
}

fn is_of_amount(query: &PaymentQuery, summary: &Summary) -> bool {
    query.min_units.is_none_or(|least| summary.amount.units >= least)
        && query.max_units.is_none_or(|most| summary.amount.units <= most)
}
