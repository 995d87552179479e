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

/// A list of one merchant's payments, newest first. Filters combine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaymentQuery {
    /// Whose.
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
    /// Only payments that ask for at least so many smallest units, of either currency.
    pub min_units: Option<u64>,
    /// Only payments that ask for at most so many smallest units, of either currency.
    pub max_units: Option<u64>,
    /// Only payments that need (or do not need) attention.
    pub unusual: Option<bool>,
    /// Only these payments; at most 100.
    pub ids: Vec<PaymentId>,
    /// Words that the id, the description, a metadata value, a payer or a transaction's id contain; each must start a
    /// word of theirs.
    pub query: Option<String>,
}

impl PaymentQuery {
    /// Returns the first page of everything.
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

/// Some days of a merchant's payments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VolumeQuery {
    /// Whose.
    pub merchant: MerchantId,
    /// The last day: whole days of UTC since 1970.
    pub last_day: u64,
    /// How many days, the last one among them.
    pub days: u64,
}

/// What came in over some days. A payment counts for the day it was made; sessions that collect fees are no sales.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Volume {
    /// Every day that was asked for, oldest first.
    pub days: Vec<DayVolume>,
    /// From creation to completion, the middle one of all that completed, to one part in 64.
    pub median_wait: Option<Duration>,
}

/// The sums of one day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DayVolume {
    /// Whole days of UTC since 1970.
    pub day: u64,
    /// Payments that were made.
    pub opened: u64,
    /// Those of them that completed.
    pub completed: u64,
    /// Those that ended, completed or not.
    pub ended: u64,
    /// What completed in HIVE, smallest units.
    pub hive_units: u64,
    /// What completed in HBD, smallest units.
    pub hbd_units: u64,
    /// What completed, in US cents of its creation.
    pub usd_cents: u64,
}

/// Payments opened within a span of time that a transfer of `money` may have been meant for: they ask for just that, or
/// something is unusual about them already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vicinity {
    /// Whose.
    pub merchant: MerchantId,
    /// What was sent.
    pub money: Money,
    /// Opened at or after.
    pub from: Timestamp,
    /// Opened at or before.
    pub to: Timestamp,
    /// Payments returned at most.
    pub limit: usize,
}

topic! {
    /// Payments and their transfers.
    Payments {
        /// Returns a payment.
        payment(id: PaymentId) -> Option<Payment>;

        /// Returns the payment a checkout address names.
        payment_by_slug(slug: SlugToken) -> Option<Payment>;

        /// Lists a merchant's payments, newest first.
        payments(query: PaymentQuery) -> Page<Payment>;

        /// Returns payments of all merchants after `after`, oldest first, of at most `limit` records; the next page starts after
        /// the last of them. Damaged ones are passed over.
        payments_after(after: PaymentId, limit: usize) -> Page<Payment>;

        /// Returns the payments that an unmatched transfer may have been meant for, newest first.
        payments_near(vicinity: Vicinity) -> Vec<Payment>;

        /// Adds up a merchant's payments of some days.
        volume(query: VolumeQuery) -> Volume;

        /// Returns pending payments whose deadline (expiry plus grace) is before `before`, earliest first, at most
        /// `limit`, after the entry `after`.
        due(before: Timestamp, after: Option<(Timestamp, PaymentId)>, limit: usize) -> Vec<(Timestamp, PaymentId)>;

        /// Returns the payments of which the chain has something to decide: an open claim on a signed transaction, or a
        /// transfer in a block that can still change.
        in_flight() -> Vec<PaymentId>;

        /// Returns a transfer of a payment, with its whole memo.
        transfer(payment: PaymentId, tx_id: TxId, op_in_tx: u32) -> Option<Credit>;

        /// Returns the transfers of a payment, newest first, before the place `before` in their order, at most `limit`, with
        /// their whole memos.
        transfers(payment: PaymentId, before: Option<u64>, limit: usize) -> Vec<Credit>;
    }
}
