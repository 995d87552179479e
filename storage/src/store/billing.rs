//! Billing periods and fee tiers.

use engine::{
    billing::{BillingTotals, Month, Period, Schedule, Status},
    ids::MerchantId,
    time::Timestamp,
};

use crate::store::{
    error::Read,
    page::Page,
    topic::topic,
    wrapped::{Call, Wrapped},
};

/// A list of merchants' months, newest first. All filters must match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeriodQuery {
    /// The page, from 1.
    pub page: u64,
    /// Items on a page, 1 to 100.
    pub limit: usize,
    /// Only this merchant.
    pub merchant: Option<MerchantId>,
    /// Only months that have this status at `now`.
    pub status: Option<Status>,
    /// The time at which `status` is evaluated.
    pub now: Timestamp,
}

topic! {
    /// Billing periods and fee tiers.
    Billing {
        /// Returns a merchant's month; none if no payment completed in it.
        period(merchant: MerchantId, month: Month) -> Option<Period>;

        /// Returns a merchant's months, newest first.
        periods_of(merchant: MerchantId) -> Vec<Period>;

        /// Lists merchants' months, newest first.
        periods(query: PeriodQuery) -> Page<Period>;

        /// Returns at most `limit` months before `before` that still have to be invoiced or paid, oldest first, after
        /// the entry `after`.
        unsettled_periods(before: Month, after: Option<(Month, MerchantId)>, limit: usize) -> Vec<Period>;

        /// Returns the totals of each merchant's months at `now`.
        billing_accounts(now: Timestamp) -> Vec<BillingTotals>;

        /// Returns the stored fee tiers.
        fee_schedule() -> Option<Schedule>;
    }
}
