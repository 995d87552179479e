//! The index of a merchant's payments by facet, so that a page reads only what it returns.
//!
//! The key of a row is merchant, facet, payment. A list of several facets merges their ranges, newest first. Ids start
//! with their creation time, so a time range is a range of ids.

use std::ops::RangeInclusive;

use engine::{
    ids::{MerchantId, PaymentId},
    money::Currency,
    payment::State,
    time::Timestamp,
};

use crate::{
    embedded::{
        fault::Fault,
        read::budget::Budget,
        tables::ListKey,
        wal::{
            snapshot::Snapshot,
            view::{Found, FoundKey, Range},
        },
    },
    record::{
        self,
        summary::{FACETS, SUMMARY_LEN, Summary, facet_of},
    },
    store::payments::PaymentQuery,
};

/// The facets of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Facets(u32);

impl Facets {
    /// All facets.
    pub(crate) const ALL: Self = Self((1 << FACETS) - 1);

    /// Returns the facets that match a query's states, currency and attention.
    pub(crate) fn of(query: &PaymentQuery) -> Self {
        let mut facets = 0;
        for state in State::ALL.into_iter().filter(|state| query.states.is_empty() || query.states.contains(state)) {
            for currency in Currency::ALL.into_iter().filter(|one| query.currency.is_none_or(|asked| asked == *one)) {
                for is_unusual in
                    [false, true].into_iter().filter(|one| query.unusual.is_none_or(|asked| asked == *one))
                {
                    facets |= 1 << facet_of(state, currency, is_unusual);
                }
            }
        }
        Self(facets)
    }

    /// Returns whether a facet is in the set.
    pub(crate) const fn has(self, facet: u8) -> bool {
        self.0 & (1 << facet) != 0
    }

    /// Returns the facets.
    pub(crate) fn iter(self) -> impl Iterator<Item = u8> {
        (0..32).filter(move |facet| self.has(*facet))
    }
}

/// An inclusive range of ids; empty if the first id is greater than the last.
pub(crate) type Ids = RangeInclusive<u128>;

/// All ids.
pub(crate) const ANY_ID: Ids = 0..=u128::MAX;

/// No id.
pub(crate) const NO_ID: Ids = Ids::new(1, 0);

/// Returns the intersection of two ranges.
pub(crate) fn common(one: &Ids, other: &Ids) -> Ids {
    *one.start().max(other.start())..=*one.end().min(other.end())
}

/// Returns the ids created at or after `from` and before `to`.
pub(crate) fn ids_made(from: Option<Timestamp>, to: Option<Timestamp>) -> Ids {
    let first = |time: Timestamp| u128::from(time.millis().min((1 << 48) - 1)) << 80;
    match to.map(first) {
        // There are no ids before time zero.
        Some(0) => NO_ID,
        to => from.map_or(0, first)..=to.map_or(u128::MAX, |end| end - 1),
    }
}

/// Payments of a list, newest first. Damaged rows are recorded and skipped.
pub(crate) struct Newest<'s> {
    merchant: u128,
    snapshot: &'s Snapshot,
    /// The smallest id of the list.
    first: u128,
    lists: Vec<List<'s>>,
    /// The last result of `seek`.
    current: Option<(u128, Summary)>,
}

/// The remaining range of one facet.
struct List<'s> {
    facet: u8,
    rest: Range<'s, ListKey, &'static [u8; SUMMARY_LEN]>,
    next: Option<(u128, Row)>,
}

type Row = (FoundKey<ListKey>, Found<&'static [u8; SUMMARY_LEN]>);

impl<'s> List<'s> {
    fn of(snapshot: &'s Snapshot, merchant: u128, facet: u8, ids: &Ids) -> Result<Self, Fault> {
        let range = (merchant, facet, *ids.start())..=(merchant, facet, *ids.end());
        let mut list = Self { facet, rest: snapshot.payments_by_merchant().range::<ListKey>(range)?, next: None };
        list.advance()?;
        Ok(list)
    }

    fn is_past(&self, bound: u128) -> bool {
        self.next.as_ref().is_none_or(|(id, _)| *id <= bound)
    }

    fn advance(&mut self) -> Result<(), Fault> {
        self.next = self.rest.next_back().transpose()?.map(|row| (row.0.value().2, row));
        Ok(())
    }
}

/// Returns a merchant's payments of some facets and ids, newest first.
pub(crate) fn newest(snapshot: &Snapshot, merchant: u128, facets: Facets, ids: Ids) -> Result<Newest<'_>, Fault> {
    let mut lists = Vec::new();
    for facet in facets.iter().filter(|_| !ids.is_empty()) {
        let list = List::of(snapshot, merchant, facet, &ids)?;
        if list.next.is_some() {
            lists.push(list);
        }
    }
    Ok(Newest { merchant, snapshot, first: *ids.start(), lists, current: None })
}

/// Number of rows of a facet that are skipped one by one before seeking.
const STEPS: usize = 4;

impl Newest<'_> {
    /// Returns the newest payment at or before `bound`, the same again for the same bound. Bounds must not increase.
    pub(crate) fn seek(&mut self, bound: u128, budget: &mut Budget) -> Result<Option<(u128, Summary)>, Fault> {
        if self.current.is_none_or(|(id, _)| id > bound) {
            self.skip(bound, budget)?;
            budget.spend(1);
            self.current = self.take_next()?;
        }
        Ok(self.current)
    }

    fn skip(&mut self, bound: u128, budget: &mut Budget) -> Result<(), Fault> {
        for list in &mut self.lists {
            for _ in 0..STEPS {
                if list.is_past(bound) {
                    break;
                }
                budget.spend(1);
                list.advance()?;
            }
            if bound < self.first {
                list.next = None;
            } else if !list.is_past(bound) {
                budget.spend_seek();
                *list = List::of(self.snapshot, self.merchant, list.facet, &(self.first..=bound))?;
            }
        }
        self.lists.retain(|list| list.next.is_some());
        Ok(())
    }

    fn take_next(&mut self) -> Result<Option<(u128, Summary)>, Fault> {
        loop {
            let newest = self.lists.iter().enumerate().filter_map(|(at, list)| Some((list.next.as_ref()?.0, at))).max();
            let Some((id, at)) = newest else { return Ok(None) };
            let list = &mut self.lists[at];
            let row = list.next.take();
            list.advance()?;
            if list.next.is_none() {
                self.lists.swap_remove(at);
            }
            let Some((_, (_, value))) = row else { continue };
            let table = self.snapshot.payments_by_merchant();
            if let Some(summary) = table.skip_damaged(summary(self.merchant, id, value.value()))? {
                return Ok(Some((id, summary)));
            }
        }
    }
}

impl Iterator for Newest<'_> {
    type Item = Result<(u128, Summary), Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        self.take_next().transpose()
    }
}

/// Returns the summary of one payment if it has one of the facets.
pub(crate) fn one(snapshot: &Snapshot, merchant: u128, facets: Facets, id: u128) -> Result<Option<Summary>, Fault> {
    let table = snapshot.payments_by_merchant();
    for facet in facets.iter() {
        if let Some(bytes) = table.get_intact((merchant, facet, id))? {
            return table.skip_damaged(summary(merchant, id, bytes.value()));
        }
    }
    Ok(None)
}

fn summary(merchant: u128, id: u128, bytes: &[u8; SUMMARY_LEN]) -> Result<Summary, Fault> {
    let key = || format!("{} of {}", PaymentId::from_bits(id), MerchantId::from_bits(merchant));
    record::summary_from_bytes(bytes).map_err(|damage| Fault::inconsistent("payments_by_merchant", key(), damage))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_combination_of_state_currency_and_attention_has_its_own_facet() {
        let mut facets = BTreeSet::new();
        for state in State::ALL {
            for currency in Currency::ALL {
                facets.extend([false, true].map(|is_unusual| facet_of(state, currency, is_unusual)));
            }
        }
        assert_eq!(facets.into_iter().collect::<Vec<_>>(), (0..24).collect::<Vec<u8>>());
        assert_eq!(Facets::ALL.iter().count(), FACETS);
    }

    #[test]
    fn a_time_range_is_a_range_of_ids() {
        let id = |millis: u64| PaymentId::new(Timestamp::from_millis(millis), [0; 10]).bits();
        let span = |from: Option<u64>, to: Option<u64>| {
            ids_made(from.map(Timestamp::from_millis), to.map(Timestamp::from_millis))
        };
        assert_eq!(span(None, None), ANY_ID);
        let span_of_one = span(Some(7), Some(8));
        assert!(span_of_one.contains(&id(7)) && !span_of_one.contains(&id(6)) && !span_of_one.contains(&id(8)));
        assert!(
            span(Some(8), Some(8)).is_empty() && span(None, Some(0)).is_empty() && span(Some(9), Some(8)).is_empty()
        );
        assert!(!span(Some(u64::MAX), None).contains(&id(8)));
    }
}
