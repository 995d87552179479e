//! What a write of a payment changes in its merchant's billing periods, and how a period is closed.

use super::{Invoice, Month, Period, Sale};
use crate::{mutant, payment::State, time::Timestamp};

/// What is known of a payment before a write of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PriorUsage {
    /// Its state.
    pub state: State,
    /// The part of a split fee that was missing, thousandths of a US cent.
    pub missing_fee_millicents: u64,
}

/// What a write of a payment means for a period.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PeriodChange {
    /// A sale completed.
    Sold(Sale),
    /// A split fee arrived, or a fork removed it, after its payment had completed.
    Fee {
        /// The sale as it is now.
        sale: Sale,
        /// What was missing before, thousandths of a US cent.
        missed_millicents: u64,
    },
    /// The session of an invoice completed.
    Paid,
}

impl PeriodChange {
    /// Returns what a write means. Completed is final: a payment counts when it gets there, once.
    #[must_use]
    pub fn of(state: State, sale: Option<Sale>, before: Option<PriorUsage>) -> Option<Self> {
        if state != State::Completed {
            return None;
        }
        let known = before.filter(|before| before.state == State::Completed && !mutant!("usage-counted-again"));
        match (sale, known) {
            (Some(sale), None) => Some(Self::Sold(sale)),
            (Some(sale), Some(known)) => {
                let missed_millicents = known.missing_fee_millicents;
                (missed_millicents != sale.missing_fee_millicents).then_some(Self::Fee { sale, missed_millicents })
            }
            (None, None) => Some(Self::Paid),
            (None, Some(_)) => None,
        }
    }

    /// Returns the month that the change is counted in, if that is still open; none for the payment of an invoice.
    #[must_use]
    pub fn month(&self) -> Option<Month> {
        match self {
            Self::Sold(sale) | Self::Fee { sale, .. } => Some(Month::of(sale.at)),
            Self::Paid => None,
        }
    }
}

impl Period {
    /// Says whether the period takes no more usage: it has its invoice.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        self.invoice.is_some()
    }

    /// Says whether an invoice made for the period as it was `read` still fits: nothing was counted or billed since.
    #[must_use]
    pub fn accepts_invoice_for(&self, read: &Self) -> bool {
        self == read && self.is_unsettled()
    }

    /// Applies a change at `now`; returns whether the period is another one.
    pub fn apply(&mut self, change: &PeriodChange, now: Timestamp) -> bool {
        self.updated_at = self.updated_at.max(now);
        match (change, &mut self.invoice) {
            (PeriodChange::Sold(sale), _) => self.usage.add(sale),
            (PeriodChange::Fee { sale, missed_millicents }, _) => {
                self.usage.adjust_missing_fee(*missed_millicents, sale.missing_fee_millicents);
            }
            (PeriodChange::Paid, Some(invoice)) => drop(invoice.paid_at.get_or_insert(now)),
            (PeriodChange::Paid, None) => return false,
        }
        true
    }

    /// Gives the period its invoice, or its invoice another session.
    pub fn set_invoice(&mut self, invoice: Invoice, at: Timestamp) {
        self.updated_at = self.updated_at.max(at);
        self.invoice = Some(invoice);
    }

    /// Takes over what the invoice of an earlier period could not set off, thousandths of a US cent.
    pub fn carry(&mut self, millicents: i64, at: Timestamp) {
        self.updated_at = self.updated_at.max(at);
        self.usage.carry(millicents);
    }
}
