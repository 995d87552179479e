//! Payments and their transfers.

use std::time::Duration;

use engine::{
    ids::{MerchantId, PaymentId, SlugToken},
    ledger::TxId,
    money::{Currency, Money},
    payment::{Credit, Payment, State},
    time::Timestamp,
};

use crate::store::{
    error::Read,
    page::{Page, PageAt},
    topic::topic,
    wrapped::{Call, Wrapped},
};

/// A list of one merchant's payments, newest first. All filters must match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaymentQuery {
    /// The merchant.
    pub merchant: MerchantId,
    /// Where the page starts.
    pub at: PageAt,
    /// Items on a page, 1 to 100.
    pub limit: usize,
    /// Only these states; empty for all.
    pub states: Vec<State>,
    /// Created at or after.
    pub from: Option<Timestamp>,
    /// Created before.
    pub to: Option<Timestamp>,
    /// Only this currency.
    pub currency: Option<Currency>,
    /// Only payments of at least this amount in smallest units, in either currency.
    pub min_units: Option<u64>,
    /// Only payments of at most this amount in smallest units, in either currency.
    pub max_units: Option<u64>,
    /// Only payments that need attention (or only those that do not).
    pub unusual: Option<bool>,
    /// Only these payments; at most 100.
    pub ids: Vec<PaymentId>,
    /// Words that must all occur in the id, the description, a metadata value, a payer or a transaction id, as the
    /// beginning of a word there.
    pub query: Option<String>,
}

impl PaymentQuery {
    /// Returns the first page without filters.
    #[must_use]
    pub const fn all(merchant: MerchantId, limit: usize) -> Self {
        Self {
            merchant,
            at: PageAt::Number(1),
            limit,
            states: Vec::new(),
            from: None,
            to: None,
            currency: None,
            min_units: None,
            max_units: None,
            unusual: None,
            ids: Vec::new(),
            query: None,
        }
    }
}

/// A range of days of a merchant's payments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VolumeQuery {
    /// The merchant.
    pub merchant: MerchantId,
    /// The last day, in days since 1970-01-01 UTC.
    pub last_day: u64,
    /// Number of days, including the last.
    pub days: u64,
}

/// Payment volume by day. A payment counts on the day it was created. Sessions that collect fees are not counted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Volume {
    /// Every requested day, oldest first.
    pub days: Vec<DayVolume>,
    /// Median time from creation to completion, accurate to one part in 64.
    pub median_wait: Option<Duration>,
}

/// Totals of one day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DayVolume {
    /// Days since 1970-01-01 UTC.
    pub day: u64,
    /// Payments created on this day.
    pub opened: u64,
    /// Of these, completed payments.
    pub completed: u64,
    /// Of these, payments in a final state.
    pub ended: u64,
    /// Amount of the completed payments in HIVE, smallest units.
    pub hive_units: u64,
    /// Amount of the completed payments in HBD, smallest units.
    pub hbd_units: u64,
    /// Amount of the completed payments, US cents at creation.
    pub usd_cents: u64,
}

/// A query for the payments that a transfer of `money` may have been meant for: opened within a time range, and either
/// of the same amount or in need of attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vicinity {
    /// The merchant.
    pub merchant: MerchantId,
    /// The transferred amount.
    pub money: Money,
    /// Opened at or after.
    pub from: Timestamp,
    /// Opened at or before.
    pub to: Timestamp,
    /// Maximum number of payments.
    pub limit: usize,
}

topic! {
    /// Payments and their transfers.
    Payments {
        /// Returns a payment.
        payment(id: PaymentId) -> Option<Payment>;

        /// Returns the versions of those of the payments that exist. Damaged records are skipped.
        versions(ids: Vec<PaymentId>) -> Vec<(PaymentId, u64)>;

        /// Returns the payment of a checkout URL's slug.
        payment_by_slug(slug: SlugToken) -> Option<Payment>;

        /// Lists a merchant's payments, newest first.
        payments(query: PaymentQuery) -> Page<Payment>;

        /// Returns payments of all merchants after `after`, oldest first, from at most `limit` records. The next page
        /// starts after the last record. Damaged records are skipped.
        payments_after(after: PaymentId, limit: usize) -> Page<Payment>;

        /// Returns the payments that an unmatched transfer may have been meant for, newest first.
        payments_near(vicinity: Vicinity) -> Vec<Payment>;

        /// Returns a merchant's payment volume by day.
        volume(query: VolumeQuery) -> Volume;

        /// Returns at most `limit` pending payments whose deadline (expiry plus grace) is before `before`, earliest
        /// first, after the entry `after`.
        due(before: Timestamp, after: Option<(Timestamp, PaymentId)>, limit: usize) -> Vec<(Timestamp, PaymentId)>;

        /// Returns the payments that wait for a block: those with an open claim on a signed transaction, or with a
        /// transfer in a reversible block.
        in_flight() -> Vec<PaymentId>;

        /// Returns a transfer of a payment, with its full memo.
        transfer(payment: PaymentId, tx_id: TxId, op_in_tx: u32) -> Option<Credit>;

        /// Returns at most `limit` transfers of a payment before the sequence number `before`, newest first, with their
        /// full memos.
        transfers(payment: PaymentId, before: Option<u64>, limit: usize) -> Vec<Credit>;
    }
}
