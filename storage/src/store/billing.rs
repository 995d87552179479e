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

topic! {
    /// Billing periods and fee tiers.
    Billing {
        /// Returns a merchant's month; none before anything completed in it.
        period(merchant: MerchantId, month: Month) -> Option<Period>;

        /// Returns a merchant's months, newest first.
        periods_of(merchant: MerchantId) -> Vec<Period>;

        /// Lists merchants' months, newest first.
        periods(query: PeriodQuery) -> Page<Period>;

        /// Returns months before `before` of which something is still to be billed or paid, oldest first, after the entry
        /// `after`, at most `limit`.
        unsettled_periods(before: Month, after: Option<(Month, MerchantId)>, limit: usize) -> Vec<Period>;

        /// Returns what each merchant's months come to at `now`.
        billing_accounts(now: Timestamp) -> Vec<BillingTotals>;

        /// Returns the stored fee tiers.
        fee_schedule() -> Option<Schedule>;
    }
}
