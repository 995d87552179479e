//! Effects of payment writes on billing periods, and closing of periods.

use super::{Invoice, Month, Period, Sale};
use crate::{mutant, payment::State, time::Timestamp};

/// The billing-relevant state of a payment before a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PriorUsage {
    /// The state.
    pub state: State,
    /// The uncollected part of a split fee, thousandths of a US cent.
    pub missing_fee_millicents: u64,
}

/// The effect of a payment write on a billing period.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PeriodChange {
    /// A payment completed.
    Sold(Sale),
    /// A split fee arrived, or a fork removed it, after its payment had completed.
    Fee {
        /// The current sale.
        sale: Sale,
        /// The previously uncollected fee, thousandths of a US cent.
        missed_millicents: u64,
    },
    /// The payment session of an invoice completed.
    Paid,
}

impl PeriodChange {
    /// Returns the effect of a write. `Completed` is a final state, so that a payment is counted once, when it reaches
    /// it.
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

    /// Returns the month in which the change is counted if that is still open; `None` for the payment of an invoice.
    #[must_use]
    pub fn month(&self) -> Option<Month> {
        match self {
            Self::Sold(sale) | Self::Fee { sale, .. } => Some(Month::of(sale.at)),
            Self::Paid => None,
        }
    }
}

impl Period {
    /// Returns whether the period is closed for usage because its invoice exists.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.invoice.is_some() && !mutant!("billed-month-counts-on")
    }

    /// Returns whether an invoice computed from `read` is still valid: the period has not changed since and is not
    /// paid.
    #[must_use]
    pub fn accepts_invoice_for(&self, read: &Self) -> bool {
        self == read && self.is_unsettled()
    }

    /// Applies a change at `now`; returns whether the period changed.
    pub fn apply(&mut self, change: &PeriodChange, now: Timestamp) -> bool {
        self.updated_at = self.updated_at.max(now);
        match (change, &mut self.invoice) {
            (PeriodChange::Sold(sale), _) => self.usage.add(sale),
            (PeriodChange::Fee { sale, missed_millicents }, _) => {
                self.usage.adjust_missing_fee(*missed_millicents, sale.missing_fee_millicents);
            }
            (PeriodChange::Paid, Some(_)) if mutant!("paid-invoice-stays-open") => return false,
            (PeriodChange::Paid, Some(invoice)) => drop(invoice.paid_at.get_or_insert(now)),
            (PeriodChange::Paid, None) => return false,
        }
        true
    }

    /// Sets the invoice, or replaces its payment session.
    pub fn set_invoice(&mut self, invoice: Invoice, at: Timestamp) {
        self.updated_at = self.updated_at.max(at);
        self.invoice = Some(invoice);
    }

    /// Carries over a credit that an earlier invoice could not offset, thousandths of a US cent.
    pub fn carry(&mut self, millicents: i64, at: Timestamp) {
        self.updated_at = self.updated_at.max(at);
        self.usage.carry(millicents);
    }
}
