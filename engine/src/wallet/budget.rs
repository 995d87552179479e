//! Budgets: what was spent in a window of time, and what is left of a limit.

use std::time::Duration;

use super::Spending;
use crate::{
    account::AccountName,
    money::{Currency, Money},
    mutant,
    time::Timestamp,
};

const HOUR: Duration = Duration::from_secs(3_600);

/// What a limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Period {
    /// One payment.
    Payment,
    /// Any 60 minutes.
    Hour,
    /// Any 24 hours.
    Day,
    /// Any 31 days, so that no calendar month exceeds the limit.
    Month,
}

impl Period {
    /// Every period, from the shortest to the longest.
    pub const ALL: [Self; 4] = [Self::Payment, Self::Hour, Self::Day, Self::Month];
    /// The longest window; an entry older than this counts nowhere.
    pub const LONGEST: Duration = Duration::from_secs(31 * 24 * HOUR.as_secs());

    /// Returns the word that policies and reports use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Payment => "payment",
            Self::Hour => "hour",
            Self::Day => "day",
            Self::Month => "month",
        }
    }

    /// Returns the length of the window; zero for one payment.
    #[must_use]
    pub const fn window(self) -> Duration {
        match self {
            Self::Payment => Duration::ZERO,
            Self::Hour => HOUR,
            Self::Day => Duration::from_secs(24 * HOUR.as_secs()),
            Self::Month => Self::LONGEST,
        }
    }
}

/// A payment that counts in budgets: its transaction is or may be in a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counted {
    /// What it spends.
    pub spending: Spending,
    /// The expiration of its transaction: the latest time at which a block can contain it.
    pub until: Timestamp,
}

impl Counted {
    /// Returns the time from which the payment counts in a window no more.
    fn leaves(&self, period: Period) -> Timestamp {
        if mutant!("budget-ends-with-the-transaction") { self.until } else { self.until + period.window() }
    }

    /// Returns its smallest units in a currency to one payee, or to all.
    fn units(&self, currency: Currency, payee: Option<AccountName>) -> u64 {
        if self.spending.currency != currency {
            return 0;
        }
        match payee {
            Some(payee) => self.spending.to(payee),
            // More than 64 bits hold exhausts every budget.
            None => self.spending.total().map_or(u64::MAX, |money| money.units),
        }
    }
}

/// A limit with what counts in its window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Usage {
    /// The payee that the limit is for; `None` for all together.
    pub payee: Option<AccountName>,
    /// The window.
    pub period: Period,
    /// The limit.
    pub limit: Money,
    /// What counts now.
    pub used: Money,
}

impl Usage {
    /// Measures a limit at a time.
    pub(super) fn of(
        payee: Option<AccountName>,
        (period, limit): (Period, Money),
        past: &[Counted],
        now: Timestamp,
    ) -> Self {
        let counts = past.iter().filter(|counted| counted.leaves(period) > now);
        let used = match period {
            Period::Payment => 0,
            _ => counts.fold(0_u64, |sum, counted| sum.saturating_add(counted.units(limit.currency, payee))),
        };
        Self { payee, period, limit, used: Money::new(used, limit.currency) }
    }

    /// Returns what may still be spent now.
    #[must_use]
    pub const fn remaining(&self) -> Money {
        Money::new(self.limit.units.saturating_sub(self.used.units), self.limit.currency)
    }
}

/// Returns when `units` fit into a limit, if nothing else is spent meanwhile; `None` if they never do.
pub(super) fn fits_at(
    (payee, period): (Option<AccountName>, Period),
    limit: Money,
    units: u64,
    past: &[Counted],
    now: Timestamp,
) -> Option<Timestamp> {
    let mut changes: Vec<Timestamp> =
        past.iter().map(|counted| counted.leaves(period)).filter(|at| *at > now).collect();
    changes.push(now);
    changes.sort_unstable();
    changes.into_iter().find(|at| units <= Usage::of(payee, (period, limit), past, *at).remaining().units)
}
