//! Compliance in the model: the volume of merchants, their limits and holds.

use std::time::Duration;

use engine::{
    audit::{self, Entry},
    compliance::{ComplianceChange, ComplianceStatus, LimitBreach, PaymentCheck, Refusal, Thresholds, Window},
    ids::MerchantId,
    payment::{Payment, State},
    time::Timestamp,
};

use super::StoreModel;
use crate::observer::Observer;

const HOUR_MS: u64 = 3_600_000;
const DAY_MS: u64 = 24 * HOUR_MS;
/// How many notices and lifted holds a status keeps.
const KEPT: usize = 20;
/// How many requests slightly below the limit of one payment, within a day, add a notice.
const NEAR_LIMIT: usize = 5;

/// Returns what completed within the last hours, US cents.
pub(crate) fn completed_cents(status: &ComplianceStatus, now: Timestamp, hours: u64) -> u64 {
    let first = (now.millis() / HOUR_MS).saturating_sub(hours);
    status.hours.iter().filter(|(hour, _)| **hour >= first).map(|(_, cents)| cents).sum()
}

fn limit_of(limits: Thresholds, window: Window) -> u64 {
    match window {
        Window::Single => limits.single_cents,
        Window::Daily => limits.daily_cents,
        Window::Monthly => limits.monthly_cents,
        Window::NearSingle => 0,
    }
}

/// A merchant's status with those of the other merchants that have proven its account, and a payment to check.
struct Assessed<'a> {
    own: ComplianceStatus,
    others: Vec<ComplianceStatus>,
    check: &'a PaymentCheck,
}

impl Assessed<'_> {
    fn reached(&self, window: Window) -> u64 {
        let hours = match window {
            Window::Single | Window::NearSingle => return self.check.usd_cents,
            Window::Daily => 24,
            Window::Monthly => 720,
        };
        let all = self.others.iter().chain([&self.own]);
        all.map(|status| completed_cents(status, self.check.at, hours)).sum::<u64>() + self.check.usd_cents
    }

    fn breach(&self, window: Window, limit_cents: u64) -> LimitBreach {
        LimitBreach { window, usd_cents: self.reached(window), limit_cents, at: self.check.at }
    }

    fn hard(&self) -> Thresholds {
        self.own.limits.unwrap_or(self.check.limits.hard)
    }

    fn refusal(&self) -> Option<Refusal> {
        if self.own.hold.is_some() || self.others.iter().any(|other| other.hold.is_some()) {
            return Some(Refusal::OnHold);
        }
        let exceeded = [Window::Single, Window::Daily, Window::Monthly].into_iter().find_map(|window| {
            let limit = limit_of(self.hard(), window);
            (limit > 0 && self.reached(window) > limit).then(|| self.breach(window, limit))
        });
        exceeded.map(Refusal::LimitExceeded)
    }

    /// Returns the notices that the payment leads to.
    fn notices(&self) -> Vec<LimitBreach> {
        let at = self.check.at;
        let mut notices = Vec::new();
        for window in [Window::Single, Window::Daily, Window::Monthly] {
            let limit = limit_of(self.check.limits.soft, window);
            let is_known = self
                .own
                .notices
                .iter()
                .any(|notice| notice.window == window && at.millis().saturating_sub(notice.at.millis()) < DAY_MS);
            if limit > 0 && self.reached(window) >= limit && (window == Window::Single || !is_known) {
                notices.push(self.breach(window, limit));
            }
        }
        let limit = self.hard().single_cents;
        if self.is_near_limit() && self.near_before().len() + 1 >= NEAR_LIMIT {
            notices.push(self.breach(Window::NearSingle, limit));
        }
        notices
    }

    fn is_near_limit(&self) -> bool {
        let limit = self.hard().single_cents;
        limit > 0 && self.check.usd_cents >= limit - limit / 10
    }

    /// Returns the earlier requests of the day that were slightly below the limit of one payment.
    fn near_before(&self) -> Vec<Timestamp> {
        let is_recent = |at: &Timestamp| self.check.at.millis().saturating_sub(at.millis()) < DAY_MS;
        self.own.near_single.iter().copied().filter(is_recent).collect()
    }
}

impl Observer {
    fn assessed<'a>(&self, check: &'a PaymentCheck) -> Assessed<'a> {
        let status = |merchant: MerchantId| self.model.compliance.get(&merchant).cloned().unwrap_or_default();
        let others = self.provers(&check.account).filter(|other| *other != check.merchant);
        Assessed { own: status(check.merchant), others: others.map(status).collect(), check }
    }

    /// Returns why a payment must not be opened.
    pub(crate) fn compliance_refusal(&self, check: &PaymentCheck) -> Option<Refusal> {
        self.assessed(check).refusal()
    }

    /// Returns whether a merchant is on hold, or another one that has proven its account.
    pub(crate) fn is_on_hold(&self, merchant: MerchantId) -> bool {
        let account = self.merchants.get(&merchant).map(|merchant| merchant.hive_account);
        // The hold may have been lifted while the refusal was in flight.
        let lately = self.true_time().minus(Duration::from_secs(900));
        let status = self.model.compliance.get(&merchant);
        let was_lifted = status.is_some_and(|status| status.clearances.iter().any(|one| one.at > lately));
        was_lifted
            || self.has_hold(merchant)
            || account.is_some_and(|account| self.provers(&account).any(|other| self.has_hold(other)))
    }

    /// Returns whether a merchant itself is on hold.
    pub(crate) fn has_hold(&self, merchant: MerchantId) -> bool {
        self.model.compliance.get(&merchant).is_some_and(|status| status.hold.is_some())
    }

    /// Adds the notices of a payment that is opened.
    pub(super) fn model_compliance_check(&mut self, check: &PaymentCheck) {
        let assessed = self.assessed(check);
        if let Some(refusal) = assessed.refusal().filter(|_| !self.was_damaged) {
            let text = format!("a payment over {} cents is created in spite of {refusal:?}", check.usd_cents);
            self.violate("limits-of-volume-hold", text, Some(check.payment));
            return;
        }
        let (notices, is_near) = (assessed.notices(), assessed.is_near_limit());
        let mut near = assessed.near_before();
        for notice in &notices {
            self.model.append(&Entry {
                seq: 0,
                at: check.at,
                actor: audit::Actor::default(),
                action: "compliance_noted".to_owned(),
                merchant: check.merchant,
                subject: Some(check.payment.to_string()),
                changes: vec![audit::FieldChange {
                    field: notice.window.as_str().to_owned(),
                    before: Some(notice.limit_cents.to_string()),
                    after: Some(notice.usd_cents.to_string()),
                }],
            });
        }
        if notices.is_empty() && !is_near {
            return;
        }
        let status = self.model.compliance.entry(check.merchant).or_default();
        if is_near {
            near.push(check.at);
            status.near_single = near.split_off(near.len().saturating_sub(NEAR_LIMIT));
        }
        status.notices.extend(notices);
        let excess = status.notices.len().saturating_sub(KEPT);
        status.notices.drain(..excess);
        self.passes("limits-of-volume-hold");
    }

    /// Counts a payment that completes for the volume of its merchant.
    pub(super) fn model_volume(&mut self, after: &Payment) {
        let was_completed = self.payments.get(&after.id).is_some_and(|known| known.payment.state == State::Completed);
        let Some(at) = after.completed_at.filter(|_| after.state == State::Completed && !was_completed) else { return };
        if after.is_invoice {
            return;
        }
        let status = self.model.compliance.entry(after.merchant).or_default();
        *status.hours.entry(at.millis() / HOUR_MS).or_default() += after.quote.usd_cents;
    }
}

impl StoreModel {
    /// Changes the compliance status of a merchant.
    pub(super) fn stands(&mut self, merchant: MerchantId, change: &ComplianceChange) {
        let status = self.compliance.entry(merchant).or_default();
        match change {
            ComplianceChange::Hold(breach) => status.hold = Some(*breach),
            ComplianceChange::Clear(clearance) => {
                status.hold = None;
                status.hours.clear();
                status.near_single.clear();
                status.clearances.push(clearance.clone());
                let excess = status.clearances.len().saturating_sub(KEPT);
                status.clearances.drain(..excess);
            }
            ComplianceChange::Limit { to, .. } => status.limits = *to,
        }
    }

    /// Returns whether a stored status is the expected one. Hours older than a month may have been deleted.
    pub(crate) fn is_expected_status(expected: &ComplianceStatus, stored: &ComplianceStatus) -> bool {
        let Some(newest) = stored.hours.keys().max() else { return *expected == *stored };
        let first = newest.saturating_sub(721);
        let mut expected = expected.clone();
        expected.hours.retain(|hour, _| *hour >= first);
        expected == *stored
    }
}
