//! Values derived from a payment: sums, exceptions and deadlines.

use super::{Disposition, DispositionTotals, FeeMode, Finality, Payment, State};
use crate::{mutant, time::Timestamp};

/// An exception of a payment that the merchant should review.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exception {
    /// Less than the amount was received.
    Underpaid,
    /// More than the amount was received.
    Overpaid,
    /// Further transfers after the payment completed.
    PaidAgain,
    /// Transfers after the deadline.
    PaidLate,
    /// Transfers after a cancellation.
    PaidAfterCancel,
    /// Transfers after the payment failed.
    PaidAfterFailure,
    /// Transfers in the other currency.
    WrongCurrency,
    /// Transfers from the receiving account itself.
    SelfTransfer,
    /// A transfer was assigned manually.
    Manual,
    /// The transaction that completed the payment was removed from the chain.
    SettlementReversed,
}

impl Exception {
    /// Every exception, in the order they are listed.
    pub const ALL: [Self; 10] = [
        Self::Underpaid,
        Self::Overpaid,
        Self::PaidAgain,
        Self::PaidLate,
        Self::PaidAfterCancel,
        Self::PaidAfterFailure,
        Self::WrongCurrency,
        Self::SelfTransfer,
        Self::Manual,
        Self::SettlementReversed,
    ];

    /// Returns the wire name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Underpaid => "underpaid",
            Self::Overpaid => "overpaid",
            Self::PaidAgain => "paid_again",
            Self::PaidLate => "paid_late",
            Self::PaidAfterCancel => "paid_after_cancel",
            Self::PaidAfterFailure => "paid_after_failure",
            Self::WrongCurrency => "wrong_currency",
            Self::SelfTransfer => "self_transfer",
            Self::Manual => "manual",
            Self::SettlementReversed => "settlement_reversed",
        }
    }
}

impl Payment {
    /// Returns the amount without the fee, smallest units.
    #[must_use]
    pub const fn net_units(&self) -> u64 {
        self.amount.units - self.quote.fee_units
    }

    /// Returns the slug of the checkout URL.
    #[must_use]
    pub fn slug_text(&self) -> String {
        self.slug.slug(&self.description)
    }

    /// Returns the irreversible money that counts toward the amount, smallest units.
    #[must_use]
    pub fn paid_units(&self) -> u64 {
        self.counted_units(|totals| totals.irreversible_units)
    }

    /// Returns the money received, smallest units: irreversible money or, for a completed payment, all that counts.
    #[must_use]
    pub fn received_units(&self) -> u64 {
        if self.state == State::Completed { self.seen_units() } else { self.paid_units() }
    }

    /// Returns the money that counts, including reversible transfers, smallest units.
    #[must_use]
    pub fn seen_units(&self) -> u64 {
        self.counted_units(|totals| totals.seen_units)
    }

    fn counted_units(&self, sum_of: impl Fn(&DispositionTotals) -> u128) -> u64 {
        let sum = |disposition| saturate(sum_of(&self.totals_with(disposition)));
        // A collected fee counts up to the quoted fee.
        sum(Disposition::Counted).saturating_add(sum(Disposition::Fee).min(self.quote.fee_units))
    }

    /// Returns the totals of a disposition, listed or not.
    fn totals_with(&self, disposition: Disposition) -> DispositionTotals {
        let mut totals = self.unlisted.as_ref().map_or_else(Default::default, |unlisted| *unlisted.with(disposition));
        self.transfers.iter().filter(|credit| credit.disposition == disposition).for_each(|credit| totals.add(credit));
        totals
    }

    /// Returns the outstanding amount, smallest units; 0 for a completed payment.
    #[must_use]
    pub fn remaining_units(&self) -> u64 {
        if self.state == State::Completed { 0 } else { self.amount.units.saturating_sub(self.paid_units()) }
    }

    /// Returns the money received beyond the amount, smallest units.
    #[must_use]
    pub fn overpaid_units(&self) -> u64 {
        let above =
            if self.state == State::Completed { self.seen_units().saturating_sub(self.amount.units) } else { 0 };
        if mutant!("surplus-is-not-excess") {
            return above;
        }
        above.saturating_add(self.units_with(&[Disposition::Surplus]))
    }

    /// Returns the money received too late to count, smallest units.
    #[must_use]
    pub fn late_units(&self) -> u64 {
        self.units_with(&[Disposition::Late, Disposition::AfterCancel, Disposition::AfterFailure])
    }

    /// Returns the fee collected by the fee account, smallest units.
    #[must_use]
    pub fn fee_collected_units(&self) -> u64 {
        self.units_with(&[Disposition::Fee])
    }

    /// Returns whether part of a split fee was not collected.
    #[must_use]
    pub fn fee_is_missing(&self) -> bool {
        self.state == State::Completed
            && matches!(self.quote.fee_mode, FeeMode::Split { .. })
            && self.fee_collected_units() < self.quote.fee_units
    }

    fn units_with(&self, dispositions: &[Disposition]) -> u64 {
        let sums = dispositions.iter().map(|disposition| saturate(self.totals_with(*disposition).seen_units));
        sums.fold(0, u64::saturating_add)
    }

    /// Returns the exceptions in a fixed order.
    #[must_use]
    pub fn exceptions(&self) -> Vec<Exception> {
        let has = |disposition| self.totals_with(disposition).transfers > 0;
        let holds = |exception| match exception {
            Exception::Underpaid => {
                self.state != State::Completed && (1..self.amount.units).contains(&self.paid_units())
            }
            Exception::Overpaid => self.state == State::Completed && self.seen_units() > self.amount.units,
            Exception::PaidAgain => has(Disposition::Surplus),
            Exception::PaidLate => has(Disposition::Late),
            Exception::PaidAfterCancel => has(Disposition::AfterCancel),
            Exception::PaidAfterFailure => has(Disposition::AfterFailure),
            Exception::WrongCurrency => has(Disposition::WrongCurrency),
            Exception::SelfTransfer => has(Disposition::SelfTransfer),
            Exception::Manual => {
                self.unlisted.as_ref().is_some_and(|unlisted| unlisted.manual > 0)
                    || self.transfers.iter().any(|credit| credit.route == super::Route::Manual)
            }
            Exception::SettlementReversed => self.is_reversed,
        };
        Exception::ALL.into_iter().filter(|exception| holds(*exception)).collect()
    }

    /// Returns whether the merchant should review the payment: it has exceptions without a decision.
    #[must_use]
    pub fn needs_attention(&self) -> bool {
        self.resolution.is_none() && !self.exceptions().is_empty()
    }

    /// Returns the completion time and the value in US cents, the contribution to the merchant's volume; `None` for
    /// payments of invoices.
    #[must_use]
    pub fn completed_volume(&self) -> Option<(Timestamp, u64)> {
        let at = self
            .completed_at
            .filter(|_| self.state == State::Completed && (!self.is_invoice || mutant!("invoices-count-as-volume")))?;
        Some((at, self.quote.usd_cents))
    }

    /// Returns the last block time that counts as in time.
    #[must_use]
    pub fn deadline(&self) -> Timestamp {
        self.expires_at + self.grace
    }

    /// Returns whether a claim or a transfer is not final yet.
    #[must_use]
    pub fn awaits_finality(&self) -> bool {
        self.claim.is_some()
            || self.unlisted.as_ref().is_some_and(|unlisted| unlisted.reversible > 0)
            || self.transfers.iter().any(|credit| credit.finality == Finality::Reversible)
    }

    /// Returns whether the payment is past its deadline, though the ledger has not confirmed it yet. `now` is the later
    /// of the wall clock and the head block's time.
    #[must_use]
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.state == State::Pending && now > self.deadline()
    }
}

/// Converts a sum to `u64`, saturating.
fn saturate(units: u128) -> u64 {
    u64::try_from(units).unwrap_or(u64::MAX)
}
