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
            State::Completed if payment.completed_at.is_none() => Some("it is completed and does not say since when"),
            State::Completed if payment.paid_by.is_none() => Some("it is completed and does not say by what"),
            State::Pending if payment.paid_units() >= payment.amount.units => Some("it is paid and pending"),
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

/// What a verification found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// The version of the tables.
    pub schema: u32,
    /// The tables and how many rows each has.
    pub tables: Vec<(&'static str, u64)>,
    /// What is wrong, in words, as far as it is told.
    pub findings: Vec<String>,
    /// How many things are wrong.
    pub finding_count: u64,
    /// What the payments add up to.
    pub books: Books,
    /// The number of the newest block whose transfers are all credited.
    pub scanned_block: Option<u32>,
}

impl Report {
    /// Says whether nothing is wrong.
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

    /// Notes a record that does not decode.
    pub(crate) fn read<T>(&mut self, table: &str, key: impl ToString, read: Result<T, impl ToString>) -> Option<T> {
        read.map_err(|damage| self.find(table, key, damage)).ok()
    }
}

/// How much a store holds. The database keeps every figure as of its last checkpoint; each row that was committed since is
/// looked up, which takes some tenths of a second where the log is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Figures {
    /// Payments.
    pub payments: u64,
    /// Pending payments, active or passivated.
    pub open_payments: u64,
    /// Payments of which the chain has something to decide.
    pub in_flight: u64,
    /// Merchants.
    pub merchants: u64,
    /// Events that are kept.
    pub events: u64,
    /// Webhooks to deliver.
    pub outbox: u64,
    /// Transfers that paid no session, handled ones too.
    pub unmatched: u64,
    /// Those of them that name a session nobody knew and about which nothing is done.
    pub unmatched_by_payment: u64,
    /// Commits that wait for the writer.
    pub queue: u64,
}
