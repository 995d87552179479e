//! Totals of a store's payments by currency and state, to compare two stores.

use std::collections::BTreeMap;

use engine::{
    money::{Currency, Money},
    payment::{Payment, State},
};

/// The totals of a store.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Books {
    /// By currency and state.
    pub lines: BTreeMap<(Currency, State), Line>,
    /// Unmatched transfers by currency: count and total in smallest units.
    pub unmatched: BTreeMap<Currency, (u64, u128)>,
}

/// Totals of the payments of one currency and state, in smallest units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Line {
    /// Number of payments.
    pub payments: u64,
    /// Requested amount.
    pub asked_units: u128,
    /// Irreversible transfers that count toward the requested amount.
    pub paid_units: u128,
    /// Irreversible transfers to the account, whether they count or not.
    pub received_units: u128,
    /// Refunded amount.
    pub refunded_units: u128,
}

impl Books {
    /// Adds a payment; returns the inconsistency in it, if any.
    pub(crate) fn enter(&mut self, payment: &Payment) -> Option<&'static str> {
        let line = self.lines.entry((payment.amount.currency, payment.state)).or_default();
        line.payments += 1;
        line.asked_units += u128::from(payment.amount.units);
        line.paid_units += u128::from(payment.paid_units());
        line.received_units += u128::from(payment.received_units());
        line.refunded_units += u128::from(payment.refunded_units());
        match payment.state {
            State::Completed if payment.completed_at.is_none() => Some("completed without a completion time"),
            State::Completed if payment.paid_by.is_none() => Some("completed without a transaction"),
            State::Pending if payment.paid_units() >= payment.amount.units => Some("pending although it is paid"),
            _ => None,
        }
    }

    /// Adds an unmatched transfer.
    pub(crate) fn enter_unmatched(&mut self, money: Money) {
        let (count, units) = self.unmatched.entry(money.currency).or_default();
        *count += 1;
        *units += u128::from(money.units);
    }
}

/// Maximum number of findings listed in full; the rest are only counted.
const MAX_LISTED_FINDINGS: usize = 100;

/// The result of a verification.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// The schema version.
    pub schema: u32,
    /// The tables and their row counts.
    pub tables: Vec<(&'static str, u64)>,
    /// The first findings, as text.
    pub findings: Vec<String>,
    /// The number of findings.
    pub finding_count: u64,
    /// Totals of the payments.
    pub books: Books,
    /// The number of the last block whose transfers are all credited.
    pub scanned_block: Option<u32>,
}

impl Report {
    /// Returns whether there are no findings.
    #[must_use]
    pub const fn is_sound(&self) -> bool {
        self.finding_count == 0
    }

    pub(crate) fn find(&mut self, table: &str, key: impl ToString, what: impl ToString) {
        self.finding_count += 1;
        if self.findings.len() < MAX_LISTED_FINDINGS {
            self.findings.push(format!("{table} {}: {}", key.to_string(), what.to_string()));
        }
    }

    pub(crate) fn hold(&mut self, holds: bool, table: &str, key: impl ToString, what: &str) {
        if !holds {
            self.find(table, key, what);
        }
    }

    /// Returns a decoded record; adds a finding if it does not decode.
    pub(crate) fn read<T>(&mut self, table: &str, key: impl ToString, read: Result<T, impl ToString>) -> Option<T> {
        read.map_err(|damage| self.find(table, key, damage)).ok()
    }
}

/// Row counts of a store. The database has each count as of its last checkpoint; rows committed since are looked up,
/// which takes some tenths of a second if the write-ahead log is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Figures {
    /// Payments.
    pub payments: u64,
    /// Pending payments, active or passivated.
    pub open_payments: u64,
    /// Payments that wait for a block.
    pub in_flight: u64,
    /// Merchants.
    pub merchants: u64,
    /// Stored events.
    pub events: u64,
    /// Deliveries in the outbox.
    pub outbox: u64,
    /// Unmatched transfers, handled and not.
    pub unmatched: u64,
    /// Of these, transfers that name an unknown session and are not handled.
    pub unmatched_by_payment: u64,
    /// Commits in the write queue.
    pub queue: u64,
}
