//! Posting lists: the payments of a word, an amount or a facet, newest first, and their intersection. A list behind the
//! others seeks to their position.

use std::collections::BinaryHeap;

use crate::{
    embedded::{
        fault::Fault,
        read::{budget::Budget, listed::Newest},
        wal::{snapshot::Snapshot, view::Range},
    },
    record::{checked::Text, summary::Summary},
};

/// Number of rows that are skipped one by one before seeking, because a seek costs as much as a few rows.
const STEPS: u64 = 4;

/// The indexed payments of one word, newest first.
pub(crate) struct WordRows<'s> {
    snapshot: &'s Snapshot,
    merchant: u128,
    word: String,
    /// The smallest id of the list.
    first: u128,
    rest: Range<'s, (u128, Text, u128), ()>,
}

impl<'s> WordRows<'s> {
    /// Returns a word's payments in an inclusive range.
    pub(crate) fn of(
        snapshot: &'s Snapshot,
        merchant: u128,
        word: String,
        (first, last): (u128, u128),
    ) -> Result<Self, Fault> {
        let rows = (merchant, &*word, first)..=(merchant, &*word, last);
        let rest = snapshot.search().range::<(u128, &str, u128)>(rows)?;
        Ok(Self { snapshot, merchant, word, first, rest })
    }

    fn step(&mut self) -> Result<Option<u128>, Fault> {
        Ok(self.rest.next_back().transpose()?.map(|row| row.0.value().2))
    }

    /// Returns the next payment at or before `bound`.
    fn advance(&mut self, bound: u128, budget: &mut Budget) -> Result<Option<u128>, Fault> {
        for _ in 0..STEPS {
            budget.spend(1);
            match self.step()? {
                Some(id) if id > bound => {}
                next => return Ok(next),
            }
        }
        if bound < self.first {
            return Ok(None);
        }
        budget.spend_seek();
        *self = Self::of(self.snapshot, self.merchant, std::mem::take(&mut self.word), (self.first, bound))?;
        self.step()
    }
}

/// A list to merge.
pub(crate) enum List<'s> {
    /// The payments of a word.
    Word(Box<WordRows<'s>>),
    /// Payments by id.
    Ids(Newest<'s>),
}

impl List<'_> {
    fn advance(&mut self, bound: u128, budget: &mut Budget) -> Result<Option<u128>, Fault> {
        match self {
            Self::Word(rows) => rows.advance(bound, budget),
            Self::Ids(newest) => Ok(newest.seek(bound, budget)?.map(|(id, _)| id)),
        }
    }
}

/// The union of several lists, with the next payment of each.
#[derive(Default)]
pub(crate) struct Merged<'s> {
    next: BinaryHeap<(u128, usize)>,
    lists: Vec<List<'s>>,
}

impl<'s> Merged<'s> {
    /// Returns the number of lists.
    pub(crate) const fn len(&self) -> usize {
        self.lists.len()
    }

    /// Adds a list.
    pub(crate) fn add(&mut self, mut list: List<'s>) -> Result<(), Fault> {
        let next = list.advance(u128::MAX, &mut Budget::of(0))?;
        self.next.extend(next.map(|id| (id, self.lists.len())));
        self.lists.push(list);
        Ok(())
    }

    fn seek(&mut self, bound: u128, budget: &mut Budget) -> Result<Option<u128>, Fault> {
        while let Some((newest, at)) = self.next.peek().copied() {
            if newest <= bound {
                return Ok(Some(newest));
            }
            self.next.pop();
            self.next.extend(self.lists[at].advance(bound, budget)?.map(|id| (id, at)));
        }
        Ok(None)
    }
}

/// The payments that match one condition.
pub(crate) enum Postings<'s> {
    /// All of them, oldest first.
    Few(Vec<u128>),
    /// A union of lists.
    Merged(Merged<'s>),
}

impl Postings<'_> {
    /// Returns the newest payment at or before `bound`. Bounds must not increase.
    fn seek(&mut self, bound: u128, budget: &mut Budget) -> Result<Option<u128>, Fault> {
        match self {
            Self::Few(ids) => {
                ids.truncate(ids.partition_point(|id| *id <= bound));
                budget.spend(1);
                Ok(ids.last().copied())
            }
            Self::Merged(lists) => lists.seek(bound, budget),
        }
    }
}

/// The intersection of several lists, newest first.
pub(crate) struct Intersection<'s> {
    found: Vec<Postings<'s>>,
    /// The payments of some facets; `None` for all facets.
    listed: Option<Newest<'s>>,
    /// The upper bound of the remaining payments; `None` at the end.
    bound: Option<u128>,
}

/// The result of a step.
pub(crate) enum Step {
    /// A payment in all lists, with its summary from the list of facets.
    Found(u128, Option<Summary>),
    /// The budget is spent. Remaining payments are older than this one.
    Spent(u128),
    /// There are no more payments.
    End,
}

impl<'s> Intersection<'s> {
    /// Intersects at least one list, for payments at or before `bound`.
    pub(crate) const fn of(found: Vec<Postings<'s>>, listed: Option<Newest<'s>>, bound: u128) -> Self {
        Self { found, listed, bound: Some(bound) }
    }

    /// Returns the next payment.
    pub(crate) fn step(&mut self, budget: &mut Budget) -> Result<Step, Fault> {
        let Some(start) = self.bound else { return Ok(Step::End) };
        let mut bound = start;
        loop {
            let before = bound;
            let mut summary = None;
            for list in &mut self.found {
                let Some(id) = list.seek(bound, budget)? else { return Ok(self.end()) };
                bound = id;
            }
            if let Some(list) = &mut self.listed {
                let Some((id, found)) = list.seek(bound, budget)? else { return Ok(self.end()) };
                (bound, summary) = (id, Some(found));
            }
            let is_alone = self.found.len() + usize::from(self.listed.is_some()) == 1;
            if bound == before || is_alone {
                self.bound = bound.checked_sub(1);
                return Ok(Step::Found(bound, summary));
            }
            self.bound = Some(bound);
            if budget.is_spent() && bound < start {
                return Ok(Step::Spent(bound + 1));
            }
        }
    }

    fn end(&mut self) -> Step {
        self.bound = None;
        Step::End
    }
}
