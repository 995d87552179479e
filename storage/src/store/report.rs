//! What the payments of a store add up to, by currency and state: two stores with the same books took the same money.

use std::collections::BTreeMap;

use engine::{
    money::{Currency, Money},
    payment::{Payment, State},
};

/// The sums of a store.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Books {
    /// By currency and state.
    pub lines: BTreeMap<(Currency, State), Line>,
    /// Transfers that paid no session, by currency: how many, and their smallest units.
    pub unmatched: BTreeMap<Currency, (u64, u128)>,
}

/// What payments in one currency and state add up to, in smallest units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Line {
    /// How many there are.
    pub payments: u64,
    /// What they ask for.
    pub asked_units: u128,
    /// What counts toward that and can no longer change.
    pub paid_units: u128,
    /// What reached the account in final blocks, whether it counts or not.
    pub received_units: u128,
    /// What was sent back.
    pub refunded_units: u128,
}

impl Books {
    /// Enters a payment; says what in it contradicts itself.
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

    /// Enters a transfer that paid no session.
    pub(crate) fn enter_unmatched(&mut self, money: Money) {
        let (count, units) = self.unmatched.entry(money.currency).or_default();
        *count += 1;
        *units += u128::from(money.units);
    }
}
