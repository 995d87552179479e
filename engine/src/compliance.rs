//! Compliance limits: maximum volume of a merchant per payment, per day and per month before a manual review.
//!
//! The volume counts completed payments, in US cents at the rate fixed for each payment. A request that exceeds a hard
//! limit is refused and puts the merchant on hold; sessions that are already open still complete.

use std::collections::BTreeMap;

use crate::{
    account::AccountName,
    audit,
    fields::Violation,
    ids::{MerchantId, PaymentId},
    mutant,
    time::Timestamp,
};

const HOUR_MS: u64 = 3_600_000;
const DAY_SECONDS: u64 = 86_400;
/// Hourly volumes kept: 30 days and the current hour.
const HOURS_KEPT: u64 = 30 * 24 + 1;
/// Number of payments slightly below the single limit within a day that triggers a notice.
const NEAR_LIMIT_COUNT: usize = 5;
/// Maximum number of notices and clearances stored; the newest are kept.
const MAX_KEPT: usize = 20;

/// Limits in US cents; 0 means no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Thresholds {
    /// Per payment.
    pub single_cents: u64,
    /// Per 24 hours, including the request.
    pub daily_cents: u64,
    /// Per 30 days, including the request.
    pub monthly_cents: u64,
}

impl Thresholds {
    /// The highest configurable limit, US cents.
    pub const MAX_CENTS: u64 = 1_000_000_000_000;

    /// Validates the limits.
    ///
    /// # Errors
    /// A [`Violation`] for each limit above [`Self::MAX_CENTS`], with its name in the REST interface.
    pub fn check(self) -> Result<Self, Vec<Violation>> {
        let fields = [
            ("singleCents", self.single_cents),
            ("dailyCents", self.daily_cents),
            ("monthlyCents", self.monthly_cents),
        ];
        let message = format!("must be a whole number from 0 to {}", Self::MAX_CENTS);
        let high = fields.into_iter().filter(|(_, cents)| *cents > Self::MAX_CENTS);
        let violations: Vec<_> = high.map(|(field, _)| Violation::new(field, message.as_str())).collect();
        if violations.is_empty() { Ok(self) } else { Err(violations) }
    }

    fn of(&self, window: Window) -> Option<u64> {
        let cents = match window {
            Window::Single => self.single_cents,
            Window::Daily => self.daily_cents,
            Window::Monthly => self.monthly_cents,
            Window::NearSingle => 0,
        };
        (cents > 0).then_some(cents)
    }
}

/// Hard and soft limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// A request that exceeds these is refused and puts the merchant on hold.
    pub hard: Thresholds,
    /// A request that reaches these adds a notice.
    pub soft: Thresholds,
}

/// The window of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    /// One payment.
    Single,
    /// 24 hours.
    Daily,
    /// 30 days.
    Monthly,
    /// Several payments within a day, each slightly below the single limit.
    NearSingle,
}

impl Window {
    /// Every window, in the order of evaluation.
    pub const ALL: [Self; 4] = [Self::Single, Self::Daily, Self::Monthly, Self::NearSingle];

    /// Returns the wire name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Daily => "24h",
            Self::Monthly => "30d",
            Self::NearSingle => "near_single",
        }
    }
}

/// A limit that was reached or exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitBreach {
    /// The window of the limit.
    pub window: Window,
    /// The volume including the request, US cents.
    pub usd_cents: u64,
    /// The limit, US cents.
    pub limit_cents: u64,
    /// The time of the request.
    pub at: Timestamp,
}

/// A hold that was lifted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clearance {
    /// The id of the admin's API key.
    pub by: String,
    /// The reason that the admin gave.
    pub reason: String,
    /// When it was lifted.
    pub at: Timestamp,
}

/// A payment to check before it is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PaymentCheck {
    /// The payment.
    pub payment: PaymentId,
    /// The merchant.
    pub merchant: MerchantId,
    /// The account that receives the payment.
    pub account: AccountName,
    /// The value, US cents.
    pub usd_cents: u64,
    /// The time of the request.
    pub at: Timestamp,
    /// The default limits.
    pub limits: Limits,
}

/// The reason why a payment must not be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The merchant is on hold.
    OnHold,
    /// The payment would exceed a hard limit.
    LimitExceeded(LimitBreach),
}

/// The changes to store with an allowed payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assessment {
    /// The merchant's status with the payment.
    pub status: ComplianceStatus,
    /// The soft limits that the payment reached.
    pub breaches: Vec<LimitBreach>,
}

impl Assessment {
    /// Returns the audit events of the soft limits that the payment reached.
    pub fn audit_entries(&self, check: &PaymentCheck) -> impl Iterator<Item = audit::Entry> {
        self.breaches.iter().map(|breach| audit::Entry {
            seq: 0,
            at: check.at,
            actor: audit::Actor::default(),
            action: "compliance_noted".to_owned(),
            merchant: check.merchant,
            subject: Some(check.payment.to_string()),
            changes: vec![audit::FieldChange {
                field: breach.window.as_str().to_owned(),
                before: Some(breach.limit_cents.to_string()),
                after: Some(breach.usd_cents.to_string()),
            }],
        })
    }
}

/// A change of a merchant's status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ComplianceChange {
    /// Put the merchant on hold, unless it already is: the first reason is kept.
    Hold(LimitBreach),
    /// Lift the hold after a review and reset the counted volume.
    Clear(Clearance),
    /// Change the merchant's own hard limits.
    Limit {
        /// The expected current limits.
        from: Option<Thresholds>,
        /// The new limits; `None` for the defaults.
        to: Option<Thresholds>,
    },
}

/// The compliance status of a merchant.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ComplianceStatus {
    /// The reason of the hold, if the merchant is on hold.
    pub hold: Option<LimitBreach>,
    /// The merchant's own hard limits.
    pub limits: Option<Thresholds>,
    /// Completed volume, US cents by hour since the epoch.
    pub hours: BTreeMap<u64, u64>,
    /// Times of the newest requests slightly below the single limit.
    pub near_single: Vec<Timestamp>,
    /// Notices, oldest first.
    pub notices: Vec<LimitBreach>,
    /// Lifted holds, oldest first.
    pub clearances: Vec<Clearance>,
}

impl ComplianceStatus {
    /// Checks a payment against the limits. Returns the changes to store, if any. `others` are the other merchants that
    /// have verified the account: their holds apply, and their volume counts.
    ///
    /// # Errors
    /// [`Refusal`] if the payment must not be opened.
    pub fn check(&self, check: &PaymentCheck, others: &[Self]) -> Result<Option<Assessment>, Refusal> {
        if (self.hold.is_some() && !mutant!("hold-not-applied")) || others.iter().any(|other| other.hold.is_some()) {
            return Err(Refusal::OnHold);
        }
        let (at, cents) = (check.at, check.usd_cents);
        let hard = self.limits.unwrap_or(check.limits.hard);
        let completed = |hours| {
            let sums = others.iter().map(|other| other.completed_cents(at, hours));
            sums.fold(self.completed_cents(at, hours), u64::saturating_add)
        };
        let reached = |window| match window {
            Window::Single | Window::NearSingle => cents,
            Window::Daily => completed(24).saturating_add(cents),
            Window::Monthly => completed(30 * 24).saturating_add(cents),
        };
        for window in Window::ALL {
            if let Some(limit_cents) = hard
                .of(window)
                .filter(|limit| reached(window) > if mutant!("limits-halved") { *limit / 2 } else { *limit })
            {
                return Err(Refusal::LimitExceeded(LimitBreach {
                    window,
                    usd_cents: reached(window),
                    limit_cents,
                    at,
                }));
            }
        }
        let mut next = None;
        let mut breaches = Vec::new();
        for window in Window::ALL {
            let Some(limit_cents) = check.limits.soft.of(window).filter(|limit| reached(window) >= *limit) else {
                continue;
            };
            // At most one notice per window and day.
            let is_recent =
                |notice: &LimitBreach| notice.window == window && at.since(notice.at).as_secs() < DAY_SECONDS;
            if window == Window::Single || !self.notices.iter().any(is_recent) {
                breaches.push(LimitBreach { window, usd_cents: reached(window), limit_cents, at });
            }
        }
        if let Some(limit_cents) = hard.of(Window::Single).filter(|limit| cents >= limit - limit / 10) {
            let next = next.get_or_insert_with(|| self.clone());
            next.near_single.retain(|earlier| at.since(*earlier).as_secs() < DAY_SECONDS);
            next.near_single.push(at);
            if next.near_single.len() >= NEAR_LIMIT_COUNT {
                next.near_single.drain(..next.near_single.len() - NEAR_LIMIT_COUNT);
                breaches.push(LimitBreach { window: Window::NearSingle, usd_cents: cents, limit_cents, at });
            }
        }
        if !breaches.is_empty() {
            let next = next.get_or_insert_with(|| self.clone());
            breaches.iter().for_each(|breach| keep_newest(&mut next.notices, *breach));
        }
        Ok(next.map(|status| Assessment { status, breaches }))
    }

    /// Returns the volume completed in the last `hours`, US cents; rounded up to whole hours.
    #[must_use]
    pub fn completed_cents(&self, now: Timestamp, hours: u64) -> u64 {
        let hours = if mutant!("volume-window-halved") { 0 } else { hours };
        let since = (now.millis() / HOUR_MS).saturating_sub(hours);
        self.hours.range(since..).fold(0, |sum, (_, cents)| sum.saturating_add(*cents))
    }

    /// Adds a completed payment to the volume.
    pub fn record_completed(&mut self, at: Timestamp, usd_cents: u64) {
        let hour = at.millis() / HOUR_MS;
        let sum = self.hours.entry(hour).or_default();
        *sum = sum.saturating_add(usd_cents);
        let newest = self.hours.last_key_value().map_or(hour, |(hour, _)| *hour);
        self.hours = self.hours.split_off(&newest.saturating_sub(HOURS_KEPT));
    }

    /// Returns whether a change applies to the current status.
    #[must_use]
    pub fn accepts(&self, change: &ComplianceChange) -> bool {
        match change {
            ComplianceChange::Hold(_) => self.hold.is_none(),
            ComplianceChange::Clear(_) => self.hold.is_some(),
            ComplianceChange::Limit { from, .. } => self.limits == *from,
        }
    }

    /// Applies a change that it [accepts](Self::accepts).
    pub fn apply(&mut self, change: ComplianceChange) {
        match change {
            ComplianceChange::Hold(breach) => self.hold = Some(breach),
            ComplianceChange::Clear(clearance) => {
                self.hold = None;
                if !mutant!("clearing-keeps-the-volume") {
                    self.hours.clear();
                }
                self.near_single.clear();
                keep_newest(&mut self.clearances, clearance);
            }
            ComplianceChange::Limit { to, .. } => self.limits = to,
        }
    }
}

fn keep_newest<T>(kept: &mut Vec<T>, new: T) {
    kept.push(new);
    kept.drain(..kept.len().saturating_sub(MAX_KEPT));
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const START: Timestamp = Timestamp::from_seconds(1_800_000_000);

    fn hours(hours: u64) -> Timestamp {
        START + Duration::from_secs(hours * 3_600)
    }

    fn check(usd_cents: u64, at: Timestamp) -> PaymentCheck {
        let limits = Limits {
            hard: Thresholds { single_cents: 1_000, daily_cents: 2_500, monthly_cents: 10_000 },
            soft: Thresholds { single_cents: 100, daily_cents: 2_000, monthly_cents: 8_000 },
        };
        let account = AccountName::parse("shop").unwrap();
        PaymentCheck {
            payment: PaymentId::from_bits(1),
            merchant: MerchantId::from_bits(1),
            account,
            usd_cents,
            at,
            limits,
        }
    }

    fn windows(status: &ComplianceStatus) -> Vec<&'static str> {
        status.notices.iter().map(|notice| notice.window.as_str()).collect()
    }

    fn refused(status: &ComplianceStatus, usd_cents: u64, at: Timestamp) -> Option<(&'static str, u64, u64)> {
        match status.check(&check(usd_cents, at), &[]) {
            Err(Refusal::LimitExceeded(over)) => Some((over.window.as_str(), over.usd_cents, over.limit_cents)),
            Err(Refusal::OnHold) => Some(("hold", 0, 0)),
            Ok(_) => None,
        }
    }

    #[test]
    fn limits_apply_to_a_payment_and_to_the_completed_volume() {
        let mut status = ComplianceStatus::default();
        assert_eq!(refused(&status, 1_000, START), None);
        assert_eq!(refused(&status, 1_001, START), Some(("single", 1_001, 1_000)));
        status.record_completed(START, 1_000);
        status.record_completed(hours(1), 1_000);
        assert_eq!(refused(&status, 500, hours(2)), None);
        assert_eq!(refused(&status, 501, hours(2)), Some(("24h", 2_501, 2_500)));
        assert_eq!(refused(&status, 501, hours(24)), Some(("24h", 2_501, 2_500)), "rounded up to whole hours");
        assert_eq!(refused(&status, 501, hours(25)), None);
        for day in 2..6 {
            status.record_completed(hours(day * 24 + 1), 2_000);
        }
        assert_eq!(refused(&status, 1, hours(8 * 24)), Some(("30d", 10_001, 10_000)));
        assert_eq!(refused(&status, 1, hours(30 * 24 + 2)), None);
    }

    #[test]
    fn a_hold_refuses_payments_until_it_is_cleared_and_clearing_resets_the_volume() {
        let mut status = ComplianceStatus::default();
        status.record_completed(START, 2_500);
        let over = |cents| LimitBreach { window: Window::Daily, usd_cents: cents, limit_cents: 2_500, at: START };
        assert!(status.accepts(&ComplianceChange::Hold(over(2_600))));
        status.apply(ComplianceChange::Hold(over(2_600)));
        assert!(!status.accepts(&ComplianceChange::Hold(over(9_999))), "the first reason is kept");
        assert_eq!(refused(&status, 1, START), Some(("hold", 0, 0)));
        let clearance = Clearance { by: "key_1".to_owned(), reason: "verified".to_owned(), at: hours(1) };
        assert!(status.accepts(&ComplianceChange::Clear(clearance.clone())));
        status.apply(ComplianceChange::Clear(clearance.clone()));
        assert!(!status.accepts(&ComplianceChange::Clear(clearance.clone())), "it is cleared once");
        assert_eq!((refused(&status, 1_000, hours(1)), &status.clearances[..]), (None, &[clearance][..]));
        let own = Some(Thresholds { single_cents: 5_000, daily_cents: 0, monthly_cents: 0 });
        status.apply(ComplianceChange::Limit { from: None, to: own });
        assert!(!status.accepts(&ComplianceChange::Limit { from: None, to: None }), "the limits have changed");
        assert_eq!(refused(&status, 5_000, hours(1)), None);
        assert_eq!(refused(&status, 5_001, hours(1)), Some(("single", 5_001, 5_000)));
        status.apply(ComplianceChange::Limit { from: own, to: None });
        assert_eq!(refused(&status, 5_000, hours(1)), Some(("single", 5_000, 1_000)));
    }

    #[test]
    fn holds_and_volume_of_other_merchants_of_the_account_apply() {
        let own = ComplianceStatus::default();
        let mut other = ComplianceStatus::default();
        other.record_completed(START, 2_000);
        let judged = |cents, others: &[ComplianceStatus]| own.check(&check(cents, START), others).err();
        assert_eq!(judged(500, std::slice::from_ref(&other)), None);
        let over = LimitBreach { window: Window::Daily, usd_cents: 2_501, limit_cents: 2_500, at: START };
        assert_eq!(judged(501, std::slice::from_ref(&other)), Some(Refusal::LimitExceeded(over)));
        assert_eq!(judged(501, &[]), None);
        other.apply(ComplianceChange::Hold(over));
        assert_eq!(judged(1, &[ComplianceStatus::default(), other]), Some(Refusal::OnHold));
    }

    #[test]
    fn soft_limits_add_notices_without_refusing() {
        let status = ComplianceStatus::default();
        assert_eq!(status.check(&check(99, START), &[]), Ok(None));
        let noted = status.check(&check(100, START), &[]).unwrap().unwrap();
        assert_eq!((windows(&noted.status), &noted.breaches), (vec!["single"], &noted.status.notices));
        let mut busy = ComplianceStatus::default();
        busy.record_completed(START, 1_950);
        let noticed = busy.check(&check(50, START), &[]).unwrap().unwrap().status;
        assert_eq!(windows(&noticed), ["24h"]);
        assert_eq!(noticed.check(&check(51, hours(23)), &[]), Ok(None), "one notice a day");
        let mut many = status;
        for hour in 0..40 {
            many = many.check(&check(100, hours(hour)), &[]).unwrap().unwrap().status;
        }
        assert_eq!((many.notices.len(), many.notices[19].at), (MAX_KEPT, hours(39)), "the newest are kept");
    }

    #[test]
    fn five_payments_slightly_below_the_limit_within_a_day_add_a_notice() {
        let mut status = ComplianceStatus::default();
        for minute in 0..5 {
            assert!(!windows(&status).contains(&"near_single"), "{minute}");
            let at = START + Duration::from_secs(minute * 60);
            status = status.check(&check(900, at), &[]).unwrap().unwrap().status;
        }
        assert!(windows(&status).contains(&"near_single"));
        let mut slow = ComplianceStatus::default();
        for day in 0..9 {
            slow = slow.check(&check(1_000, hours(day * 10)), &[]).unwrap().unwrap().status;
        }
        assert!(!windows(&slow).contains(&"near_single"), "not within one day");
        assert_eq!(ComplianceStatus::default().check(&check(899, START), &[]).unwrap().unwrap().status.near_single, []);
    }

    #[test]
    fn at_most_thirty_days_of_volume_are_kept() {
        let mut status = ComplianceStatus::default();
        for hour in 0..2_000 {
            status.record_completed(hours(hour), 1);
        }
        // A clock that was set back.
        status.record_completed(hours(1_900), 1);
        assert!(status.hours.len() as u64 <= HOURS_KEPT + 1);
        assert_eq!(status.completed_cents(hours(1_999), 24), 25);
        status.record_completed(hours(1_999), u64::MAX);
        assert_eq!(status.completed_cents(hours(1_999), 24), u64::MAX, "it saturates");
    }
}
