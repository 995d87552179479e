//! A wallet's policy: limits by period, currency and payee, lists of accounts and hosts, the approval threshold.

use std::collections::{BTreeMap, BTreeSet};

use super::{Approval, Counted, Host, HostPattern, Period, Spending, Usage, budget::fits_at};
use crate::{
    account::AccountName,
    money::{Currency, Money},
    time::Timestamp,
};

/// Limits by period and currency.
pub type Limits = BTreeMap<(Period, Currency), u64>;

/// Allowed and denied payees. A denial takes precedence over a permission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lists<T> {
    /// What is permitted; `None` permits everything, an empty list nothing.
    pub allow: Option<T>,
    /// What is refused.
    pub deny: T,
}

impl<T: Default> Default for Lists<T> {
    fn default() -> Self {
        Self { allow: None, deny: T::default() }
    }
}

impl<T> Lists<T> {
    fn permits(&self, is_in: impl Fn(&T) -> bool) -> bool {
        !is_in(&self.deny) && self.allow.as_ref().is_none_or(is_in)
    }
}

/// What a wallet may pay.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Policy {
    /// Limits of all payments together. A currency without a limit cannot be spent.
    pub limits: Limits,
    /// Further limits of single payees.
    pub payees: BTreeMap<AccountName, Limits>,
    /// Accounts that may receive a transfer, fee accounts included.
    pub accounts: Lists<BTreeSet<AccountName>>,
    /// Hosts that requests may go to.
    pub hosts: Lists<Vec<HostPattern>>,
    /// Amounts above which an operator must approve, by currency.
    pub approval_above: BTreeMap<Currency, u64>,
}

/// Why a policy does not permit a payment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The host is denied, or not on the list of allowed hosts.
    #[error("the policy does not allow payments to the host {0}")]
    Host(String),
    /// An account is denied, or not on the list of allowed accounts.
    #[error("the policy does not allow transfers to the account {0}")]
    Account(AccountName),
    /// No limit names the currency.
    #[error("the policy has no limit in {0}, so nothing may be spent in it")]
    Currency(Currency),
    /// Nothing, or more than fits 64 bits.
    #[error("the amount is not a payable amount")]
    Amount,
    /// More than a limit leaves.
    #[error(
        "{asked} exceeds the limit of {limit} {}: {} is left{}",
        describe(*.period, *.payee),
        left(*.limit, *.used),
        .available_at.map(|at| format!("; it fits at {at}")).unwrap_or_default()
    )]
    Limit {
        /// The window.
        period: Period,
        /// The payee that the limit is for; `None` for all together.
        payee: Option<AccountName>,
        /// The limit.
        limit: Money,
        /// What counts in the window.
        used: Money,
        /// What the payment adds.
        asked: Money,
        /// When the payment fits; `None` if it never does.
        available_at: Option<Timestamp>,
    },
    /// Above the threshold, and not approved.
    #[error("{asked} is above {above}: an operator must approve it")]
    ApprovalNeeded {
        /// What the payment spends.
        asked: Money,
        /// The threshold.
        above: Money,
    },
    /// An operator refused it.
    #[error("an operator denied this payment")]
    ApprovalDenied,
}

fn describe(period: Period, payee: Option<AccountName>) -> String {
    let scope = payee.map(|payee| format!(" to {payee}")).unwrap_or_default();
    format!("per {}{scope}", period.as_str())
}

fn left(limit: Money, used: Money) -> Money {
    Money::new(limit.units.saturating_sub(used.units), limit.currency)
}

impl Refusal {
    /// Returns the word for programs.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Host(_) => "host_not_allowed",
            Self::Account(_) => "account_not_allowed",
            Self::Currency(_) => "currency_not_allowed",
            Self::Amount => "invalid_amount",
            Self::Limit { period: Period::Payment, .. } => "above_payment_limit",
            Self::Limit { period: Period::Hour, .. } => "above_hour_limit",
            Self::Limit { period: Period::Day, .. } => "above_day_limit",
            Self::Limit { period: Period::Month, .. } => "above_month_limit",
            Self::ApprovalNeeded { .. } => "approval_needed",
            Self::ApprovalDenied => "approval_denied",
        }
    }
}

impl Policy {
    /// Returns the currencies that may be spent.
    pub fn currencies(&self) -> impl Iterator<Item = Currency> + '_ {
        Currency::ALL.into_iter().filter(|currency| self.has_limit(*currency))
    }

    fn has_limit(&self, currency: Currency) -> bool {
        self.limits.keys().any(|(_, limited)| *limited == currency)
    }

    /// Checks whether requests may go to a host.
    ///
    /// # Errors
    /// [`Refusal::Host`].
    pub fn check_host(&self, host: Host<'_>) -> Result<(), Refusal> {
        let is_in = |patterns: &Vec<HostPattern>| patterns.iter().any(|pattern| pattern.covers(host));
        if self.hosts.permits(is_in) { Ok(()) } else { Err(Refusal::Host(format!("{}:{}", host.name, host.port))) }
    }

    /// Checks a payment against the lists, every limit and the approval threshold, in this order.
    ///
    /// `past` holds the payments that count ([`super::State::counts`]) and whose transaction expired at most
    /// [`Period::LONGEST`] ago. `now` is the wallet's time, which never runs backwards.
    ///
    /// # Errors
    /// The first [`Refusal`].
    pub fn check(
        &self,
        spending: &Spending,
        approval: Option<&Approval>,
        past: &[Counted],
        now: Timestamp,
    ) -> Result<(), Refusal> {
        let total = spending.total().filter(|_| spending.parts.iter().all(|(_, units)| *units > 0));
        let total = total.filter(|total| total.units > 0).ok_or(Refusal::Amount)?;
        if let Some((account, _)) =
            spending.parts.iter().find(|(to, _)| !self.accounts.permits(|list| list.contains(to)))
        {
            return Err(Refusal::Account(*account));
        }
        if !self.has_limit(spending.currency) {
            return Err(Refusal::Currency(spending.currency));
        }
        for (payee, limit) in self.limits_of(spending.currency) {
            let asked = payee.map_or(total.units, |payee| spending.to(payee));
            check_limit((payee, limit), asked, past, now)?;
        }
        self.check_approval(spending, total, approval, now)
    }

    fn check_approval(
        &self,
        spending: &Spending,
        asked: Money,
        approval: Option<&Approval>,
        now: Timestamp,
    ) -> Result<(), Refusal> {
        match self.approval_above.get(&spending.currency) {
            Some(above) if asked.units > *above => match approval {
                Some(approval) if approval.permits(spending, now) => Ok(()),
                Some(approval) if !approval.is_granted && approval.is_valid(now) => Err(Refusal::ApprovalDenied),
                _ => Err(Refusal::ApprovalNeeded { asked, above: Money::new(*above, spending.currency) }),
            },
            _ => Ok(()),
        }
    }

    /// Returns each limit in a currency, with the payee that it is for.
    fn limits_of(&self, currency: Currency) -> impl Iterator<Item = (Option<AccountName>, (Period, Money))> + '_ {
        let all = self.limits.iter().map(|limit| (None, limit));
        let payees = self.payees.iter().flat_map(|(payee, limits)| limits.iter().map(|limit| (Some(*payee), limit)));
        let limit = |(payee, ((period, limited), units)): (_, (&(Period, Currency), &u64))| {
            (payee, (*period, Money::new(*units, *limited)))
        };
        all.chain(payees).map(limit).filter(move |(_, (_, limit))| limit.currency == currency)
    }

    /// Measures every limit at a time.
    #[must_use]
    pub fn usage(&self, past: &[Counted], now: Timestamp) -> Vec<Usage> {
        let limits = Currency::ALL.into_iter().flat_map(|currency| self.limits_of(currency));
        limits.map(|(payee, limit)| Usage::of(payee, limit, past, now)).collect()
    }
}

fn check_limit(
    (payee, (period, limit)): (Option<AccountName>, (Period, Money)),
    asked: u64,
    past: &[Counted],
    now: Timestamp,
) -> Result<(), Refusal> {
    let usage = Usage::of(payee, (period, limit), past, now);
    // A payment to others is not stopped by the budget of a payee that it does not pay.
    if asked == 0 || asked <= usage.remaining().units {
        return Ok(());
    }
    let available_at = fits_at((payee, period), limit, asked, past, now);
    let asked = Money::new(asked, limit.currency);
    Err(Refusal::Limit { period, payee, limit, used: usage.used, asked, available_at })
}
