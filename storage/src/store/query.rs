//! Lists: what can be asked for, and what a page is.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use engine::{
    account::AccountName,
    billing::Status,
    ids::{DeliveryId, EventId, MerchantId, PaymentId},
    ledger::Place,
    merchant::Merchant,
    money::{Currency, Money},
    payment::State,
    time::Timestamp,
    webhook::{Delivery, DeliveryState, Endpoint},
};

/// Where a page starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageAt {
    /// Page `number`, from 1.
    Number(u64),
    /// Right after this item (older than it): steady while new items arrive. Payments are not counted, their total is left
    /// at 0.
    After(u128),
    /// The same, and nothing is counted: the total is left at 0. What reads a whole list page by page.
    Following(u128),
}

/// A page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// Its items.
    pub items: Vec<T>,
    /// How many items the whole list has.
    pub total: u64,
    /// Whether it has more than `total`: they were not all counted.
    pub total_is_lower_bound: bool,
    /// After which item the next page starts, where there may be one. A page may be shorter than was asked for, even empty,
    /// and have a next one.
    pub next: Option<u128>,
}

impl<T> Page<T> {
    /// Returns a page of a list that was counted.
    #[must_use]
    pub const fn of(items: Vec<T>, total: u64) -> Self {
        Self { items, total, total_is_lower_bound: false, next: None }
    }
}

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

/// A list of merchants, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MerchantQuery {
    /// Where the page starts.
    pub at: PageAt,
    /// Items on a page, 1 to 100.
    pub limit: usize,
    /// Text that the id, the name or the account contains, whatever the case.
    pub query: Option<String>,
    /// Only active (or inactive) ones.
    pub active: Option<bool>,
    /// Only those on hold for compliance (or not).
    pub on_hold: Option<bool>,
}

impl MerchantQuery {
    /// The first merchants of all.
    #[must_use]
    pub const fn all(limit: usize) -> Self {
        Self { at: PageAt::Number(1), limit, query: None, active: None, on_hold: None }
    }
}

/// A merchant in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedMerchant {
    /// The merchant.
    pub merchant: Arc<Merchant>,
    /// Whether it is on hold for compliance.
    pub is_on_hold: bool,
}

/// A transfer that names a session nobody knew: the session, the account it went to, and where it stands.
pub type StrayKey = (PaymentId, AccountName, Place);

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

/// A list of one merchant's deliveries, newest first. Filters combine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryQuery {
    /// Whose.
    pub merchant: MerchantId,
    /// Only older ones than this.
    pub before: Option<DeliveryId>,
    /// How many at most.
    pub limit: usize,
    /// Only these states; empty for all.
    pub states: Vec<DeliveryState>,
    /// Only of this event.
    pub event: Option<EventId>,
    /// Only of this payment's events.
    pub payment: Option<PaymentId>,
}

/// Due work that is not asked for.
#[derive(Debug, Clone, Default)]
pub struct Passed {
    /// Whose work.
    pub merchants: BTreeSet<MerchantId>,
    /// Deliveries that whoever asks knows of.
    pub deliveries: BTreeSet<DeliveryId>,
}

/// What is due of one merchant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueWork {
    /// Whose.
    pub merchant: MerchantId,
    /// How its endpoint is.
    pub endpoint: Endpoint,
    /// Deliveries, earliest first.
    pub deliveries: Vec<Due>,
}

/// A delivery that is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due {
    /// The delivery.
    pub delivery: Delivery,
    /// Whether an earlier event of the same payment still waits.
    pub follows: bool,
}

/// A part of the audit log, newest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditQuery {
    /// Only entries before this place.
    pub before: Option<u64>,
    /// Entries at most.
    pub limit: usize,
    /// Only what this merchant did, or what concerns it.
    pub merchant: Option<MerchantId>,
}

/// A list of merchants' months, newest first. Filters combine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeriodQuery {
    /// The page, from 1.
    pub page: u64,
    /// Items on a page, 1 to 100.
    pub limit: usize,
    /// Only this merchant's.
    pub merchant: Option<MerchantId>,
    /// Only those that stand so at `now`.
    pub status: Option<Status>,
    /// The present.
    pub now: Timestamp,
}
