//! Lists of a merchant's payments: a page and the total, within a bounded number of reads.

use std::{collections::BTreeSet, ops::Bound};

use engine::{
    ids::PaymentId,
    mutant,
    payment::{Payment, State},
};

use crate::{
    embedded::{
        fault::Fault,
        read::{
            budget::Budget,
            days::{self, Tally},
            listed::{self, Facets, Ids, common},
            postings::{Intersection, Step},
            search::{self, Wanted},
        },
        wal::snapshot::Snapshot,
    },
    record::{self, codes::Code, summary::Summary},
    store::{
        page::{Page, PageAt},
        payments::PaymentQuery,
    },
};

/// Maximum total of a list that must be read to be counted.
pub(crate) const MAX_COUNTED: u64 = 10_000;
/// Budget of a page beyond what it returns, in index rows.
const BUDGET: Budget = Budget::of(10_000);
/// Cost of finding that a word has too many rows, in index rows.
const LOOKUP_COST: u64 = (search::MERGED_MAX + search::SORTED_MAX) as u64;
/// Additional cost of reading a payment's record, in index rows.
const RECORD_COST: u64 = 8;
/// Maximum number of words and amounts of a query that are looked up in the index. The others are compared with
/// records.
pub(crate) const MAX_LOOKED_UP: usize = 3;
/// Length up to which a list is read instead of searched.
const SHORT_LIST: usize = 500;

/// Returns the versions of those of the payments that exist. Damaged records are skipped.
pub(crate) fn versions(snapshot: &Snapshot, ids: &[PaymentId]) -> Result<Vec<(PaymentId, u64)>, Fault> {
    let payments = snapshot.payments();
    let mut found = Vec::new();
    for id in ids {
        let Some(bytes) = payments.get_intact(id.bits())? else { continue };
        let facts = record::payment_facts(bytes.value()).map_err(Fault::damaged("payments", id));
        found.extend(payments.skip_damaged(facts)?.map(|facts| (*id, facts.version)));
    }
    Ok(found)
}

/// Lists a merchant's payments.
pub(crate) fn payments(snapshot: &Snapshot, query: &PaymentQuery) -> Result<Page<Payment>, Fault> {
    let facets = Facets::of(query);
    let ids = listed::ids_made(query.from, query.to);
    let mut wanted = Vec::new();
    let words = query.query.as_deref().and_then(Wanted::parse);
    let finds_nothing = words.as_ref().is_some_and(Vec::is_empty);
    if query.min_units.is_some() || query.max_units.is_some() {
        wanted.push(Wanted::Amount(query.min_units.unwrap_or(0)..=query.max_units.unwrap_or(u64::MAX)));
    }
    wanted.extend(words.into_iter().flatten());
    let slice = match wanted.is_empty() && query.ids.is_empty() {
        _ if finds_nothing => Slice::of(query),
        true => indexed(snapshot, query, facets, ids)?,
        false => searched(snapshot, query, facets, &from_cursor(query, ids), &wanted)?,
    };
    let Slice { found, total, total_is_lower_bound, next, .. } = slice;
    let records = snapshot.payments();
    let load = |id| {
        let key = PaymentId::from_bits(id);
        let bytes = records.get(id)?.ok_or_else(|| Fault::inconsistent("payments", key, "it is listed but missing"))?;
        record::payment_from_bytes(key, bytes.value()).map_err(Fault::damaged("payments", key))
    };
    // A damaged payment is skipped, the others are returned.
    let items =
        found.into_iter().filter_map(|id| records.skip_damaged(load(id)).transpose()).collect::<Result<_, Fault>>()?;
    Ok(Page { items, total, total_is_lower_bound, next })
}

/// Returns payments of all merchants after `after`, oldest first, from at most `limit` records.
pub(crate) fn after(snapshot: &Snapshot, after: PaymentId, limit: usize) -> Result<Page<Payment>, Fault> {
    let records = snapshot.payments();
    let mut page = Page::of(Vec::new(), 0);
    for row in records.range::<u128>((Bound::Excluded(after.bits()), Bound::Unbounded))?.take(limit) {
        let (key, bytes) = row?;
        let id = PaymentId::from_bits(key.value());
        let read = record::payment_from_bytes(id, bytes.value()).map_err(Fault::damaged("payments", id));
        page.items.extend(records.skip_damaged(read)?);
        page.next = Some(key.value());
    }
    Ok(page)
}

/// A page under construction, to which items are offered newest first.
pub(crate) struct Slice {
    limit: usize,
    /// Number of items before the page that are still to come.
    pub(crate) skipped: u64,
    pub(crate) is_counted: bool,
    pub(crate) found: Vec<u128>,
    pub(crate) next: Option<u128>,
    pub(crate) total: u64,
    pub(crate) total_is_lower_bound: bool,
    /// Whether no more items must be offered.
    is_over: bool,
}

impl Slice {
    /// Begins a page of a query.
    pub(crate) fn of(query: &PaymentQuery) -> Self {
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
            is_over: false,
        }
    }

    /// Adds an item of the list.
    pub(crate) fn offer(&mut self, id: u128) {
        self.total += u64::from(self.is_counted);
        if self.skipped > 0 {
            self.skipped -= 1;
        } else if self.found.len() < self.limit {
            self.found.push(id);
        } else if self.next.is_none() {
            // There is a next page.
            self.next = self.found.last().copied();
        }
    }

    /// Returns whether the page is full and whether a next one exists is known.
    const fn is_full(&self) -> bool {
        self.next.is_some()
    }

    /// Returns whether later items cannot change the page or its total.
    pub(crate) const fn is_settled(&self) -> bool {
        self.is_full() && (!self.is_counted || self.total > MAX_COUNTED)
    }

    /// Ends the page at the limit; there may be more items after `last`, the last one read.
    pub(crate) fn stop(&mut self, last: u128) {
        // For a page by number, items before the page are missing: there is no page to continue from.
        self.next = self.next.or(Some(last)).filter(|_| self.skipped == 0);
        self.total_is_lower_bound = self.is_counted;
        self.total = self.total.min(MAX_COUNTED);
        self.is_over = true;
    }
}

/// Returns the part of a range at or after the start of the page.
pub(crate) fn from_cursor(query: &PaymentQuery, ids: Ids) -> Ids {
    match query.at {
        PageAt::Number(_) | PageAt::After(u128::MAX) | PageAt::Following(u128::MAX) => ids,
        PageAt::After(0) | PageAt::Following(0) => listed::NO_ID,
        PageAt::After(id) | PageAt::Following(id) => *ids.start()..=*ids.end().min(&(id - 1)),
    }
}

/// Lists from the index alone. Reads only what is on the page, and the summaries of one day.
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
        None if is_counted => days::tally(snapshot, merchant, facets, &ids, MAX_COUNTED)?,
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
    for listed in listed::newest_first(snapshot, merchant, facets, ids)? {
        slice.offer(listed?.0);
        if slice.is_full() {
            break;
        }
    }
    Ok(slice)
}

/// The conditions on a payment that the index does not decide.
struct Check<'q> {
    snapshot: &'q Snapshot,
    merchant: u128,
    facets: Facets,
    wanted: Vec<&'q Wanted>,
    budget: Budget,
}

impl Check<'_> {
    /// Returns whether a payment of the list's facets matches, and subtracts the cost.
    fn matches(&mut self, id: u128, listed: Option<Summary>) -> Result<bool, Fault> {
        // The index row has the amount; without it the record is read.
        let is_of_amount = |wanted: &&Wanted| match (wanted, &listed) {
            (Wanted::Amount(units), Some(summary)) => Some(units.contains(&summary.amount.units)),
            _ => None,
        };
        if self.wanted.iter().any(|wanted| is_of_amount(wanted) == Some(false)) {
            return Ok(false);
        }
        let words: Vec<_> = self.wanted.iter().copied().filter(|wanted| is_of_amount(wanted).is_none()).collect();
        if words.is_empty() {
            return Ok(true);
        }
        self.budget.spend(RECORD_COST);
        search::finds(self.snapshot, &words, id, &mut self.budget)
    }

    /// Offers a payment; returns whether the page is complete.
    pub(crate) fn offer(&mut self, slice: &mut Slice, id: u128, listed: Option<Summary>) -> Result<bool, Fault> {
        if self.matches(id, listed)? {
            slice.offer(id);
        }
        let is_over = slice.is_settled() || self.budget.is_spent();
        if is_over {
            slice.stop(id);
        }
        Ok(is_over)
    }
}

/// Lists by ids, words and amounts: reads the payments that are not indexed yet, then searches the index. The number of
/// reads is bounded; the next page continues.
fn searched(
    snapshot: &Snapshot,
    query: &PaymentQuery,
    facets: Facets,
    ids: &Ids,
    wanted: &[Wanted],
) -> Result<Slice, Fault> {
    let merchant = query.merchant.bits();
    let mut slice = Slice::of(query);
    let mut check = Check { snapshot, merchant, facets, wanted: wanted.iter().collect(), budget: BUDGET };
    if !query.ids.is_empty() {
        let wanted: BTreeSet<u128> = query.ids.iter().map(|id| id.bits()).filter(|id| ids.contains(id)).collect();
        for id in wanted.into_iter().rev() {
            let listed = listed::one(snapshot, merchant, facets, id)?;
            if listed.is_some() && check.offer(&mut slice, id, listed)? {
                break;
            }
        }
        return Ok(slice);
    }
    let cursor = search::cursor(snapshot)?;
    let is_short = (facets != Facets::ALL || *ids != listed::ANY_ID)
        && listed::newest_first(snapshot, merchant, facets, ids.clone())?.take(SHORT_LIST + 1).count() <= SHORT_LIST;
    // A short list is read directly, and so is a list for which every condition has too many entries.
    let (mut found, mut others) = (Vec::new(), Vec::new());
    let indexed = common(ids, &(0..=cursor));
    for (at, wanted) in wanted.iter().enumerate() {
        if is_short || at >= MAX_LOOKED_UP {
            others.push(wanted);
        } else if let Some(postings) = search::find(snapshot, merchant, wanted, &indexed)? {
            found.push(postings);
        } else {
            check.budget.spend(LOOKUP_COST);
            others.push(wanted);
        }
    }
    if found.is_empty() {
        return walk(snapshot, &mut check, slice, ids.clone());
    }
    let unread = common(ids, &(cursor.saturating_add(1)..=u128::MAX));
    let is_all_read = cursor == u128::MAX || mutant!("unindexed-not-searched");
    let mut slice = if is_all_read { slice } else { walk(snapshot, &mut check, slice, unread)? };
    if slice.is_over {
        return Ok(slice);
    }
    check.wanted = others;
    let listed = match facets == Facets::ALL {
        true => None,
        false => Some(listed::newest_first(snapshot, merchant, facets, indexed.clone())?),
    };
    let mut common = Intersection::of(found, listed, *indexed.end());
    loop {
        match common.step(&mut check.budget)? {
            Step::Found(id, listed) if check.offer(&mut slice, id, listed)? => break,
            Step::Found(..) => {}
            Step::Spent(last) => {
                slice.stop(last);
                break;
            }
            Step::End => break,
        }
    }
    Ok(slice)
}

/// Offers every payment of a list.
fn walk(snapshot: &Snapshot, check: &mut Check<'_>, mut slice: Slice, ids: Ids) -> Result<Slice, Fault> {
    for listed in listed::newest_first(snapshot, check.merchant, check.facets, ids)? {
        let (id, summary) = listed?;
        check.budget.spend(1);
        if check.offer(&mut slice, id, Some(summary))? {
            break;
        }
    }
    Ok(slice)
}

/// Returns the total of a list if the counts by state provide it.
fn counted(snapshot: &Snapshot, query: &PaymentQuery) -> Result<Option<u64>, Fault> {
    let PaymentQuery { merchant, states, from: None, to: None, currency: None, unusual: None, .. } = query else {
        return Ok(None);
    };
    let counts = snapshot.payment_counts();
    let mut total = 0;
    for state in State::ALL {
        if states.is_empty() || states.contains(&state) {
            match counts.skip_damaged(counts.get((merchant.bits(), state.number())))? {
                Some(count) => total += count.map_or(0, |count| count.value()),
                // A list of ids is counted when it is read.
                None => return Ok(None),
            }
        }
    }
    Ok(Some(total))
}
