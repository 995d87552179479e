//! Events of a payment: a new status, new exceptions, further money of existing exceptions, and refunds.

use sha2::{Digest, Sha256};

use super::{Disposition, Effect, Exception, Payment, Refund, State, Totals, Transition};
use crate::{
    ids::{EventId, PaymentId},
    mutant,
    time::Timestamp,
};

/// An event of a payment, announced to the merchant under one stable id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// The event id, derived from the payment and the sequence, so that a crash cannot duplicate the event.
    pub id: EventId,
    /// The previous state.
    pub from: State,
    /// The new state; equal to `from` for events of exceptions and refunds.
    pub to: State,
    /// The payment's sequence number of the event.
    pub sequence: u32,
    /// When it happened.
    pub at: Timestamp,
}

impl Event {
    pub(super) fn of(payment: PaymentId, (from, to): (State, State), sequence: u32, at: Timestamp) -> Self {
        Self { id: event_id(payment, sequence), from, to, sequence, at }
    }
}

/// Minimum size of further money of a known exception to be announced: the inverse of its fraction of the amount, a
/// tenth.
const NOTABLE: u128 = 10;

/// New exceptions of a payment, or further money of existing ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExceptionEvent {
    /// The event.
    pub event: Event,
    /// The exceptions announced, in order.
    pub new: Vec<Exception>,
}

/// A new refund of a payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefundEvent {
    /// The event.
    pub event: Event,
    /// The refund.
    pub refund: Refund,
}

impl Transition {
    /// Announces the refund that `before` did not have. A command adds at most one.
    pub(super) fn announce_refund(&mut self, before: &Payment, now: Timestamp) {
        let Some(refund) = self.payment.refunds.get(before.refunds.len()).cloned() else { return };
        if mutant!("refund-not-notified") {
            return;
        }
        self.payment.sequence += 1;
        let state = self.payment.state;
        let event = Event::of(self.payment.id, (state, state), self.payment.sequence, now);
        self.effects.push(Effect::Notify(event.id));
        self.refund = Some(RefundEvent { event, refund });
    }

    /// Announces the exceptions that `before` did not have, and those with notable further money. Only irreversible
    /// money counts, so that a fork cannot revoke an announcement.
    pub(super) fn announce_exceptions(&mut self, before: &Payment, now: Timestamp) {
        let (was, is) = (before.totals(), self.payment.totals());
        let known = before.final_exceptions(&was);
        let mut new = self.payment.final_exceptions(&is);
        let seen = before.exceptions();
        if new.iter().any(|exception| *exception != Exception::Manual && !seen.contains(exception)) {
            // The previous decision did not cover it.
            self.payment.resolution = None;
        }
        let is_reopened = before.resolution.is_some() && self.payment.resolution.is_none();
        let amount = u128::from(before.amount.units);
        let is_notable = |exception: Exception| {
            let Some(disposition) = exception.disposition().filter(|_| !mutant!("exceptions-notified-once")) else {
                return false;
            };
            let [was, is] = [&was, &is].map(|totals| totals.with(disposition).irreversible_units);
            // Limits the events of many small transfers: one for each doubling of their sum, once it is notable.
            let has_doubled = || is * NOTABLE >= amount && is.checked_ilog2() > was.checked_ilog2();
            is > was && (is_reopened || (is - was) * NOTABLE >= amount || has_doubled())
        };
        new.retain(|exception| !known.contains(exception) || is_notable(*exception));
        if new.is_empty() {
            return;
        }
        self.payment.sequence += 1;
        let state = self.payment.state;
        let event = Event::of(self.payment.id, (state, state), self.payment.sequence, now);
        self.effects.push(Effect::Notify(event.id));
        self.exception = Some(ExceptionEvent { event, new });
    }
}

impl Payment {
    /// Returns the exceptions caused by irreversible money.
    fn final_exceptions(&self, totals: &Totals) -> Vec<Exception> {
        let mut found = self.exceptions();
        found.retain(|exception| match exception.disposition() {
            Some(disposition) => {
                totals.with(disposition).irreversible_units > u128::from(mutant!("small-exceptions-not-notified"))
            }
            None => *exception != Exception::Overpaid || self.paid_units() > self.amount.units,
        });
        found
    }
}

impl Exception {
    /// Returns the disposition of the transfers that cause the exception; `None` if it is not caused by transfers of
    /// one disposition.
    const fn disposition(self) -> Option<Disposition> {
        match self {
            Self::PaidAgain => Some(Disposition::Surplus),
            Self::PaidLate => Some(Disposition::Late),
            Self::PaidAfterCancel => Some(Disposition::AfterCancel),
            Self::PaidAfterFailure => Some(Disposition::AfterFailure),
            Self::WrongCurrency => Some(Disposition::WrongCurrency),
            Self::SelfTransfer => Some(Disposition::SelfTransfer),
            Self::Underpaid | Self::Overpaid | Self::Manual | Self::SettlementReversed => None,
        }
    }
}

/// Returns the event id, derived from the payment and the sequence only: an event announced again after a restore keeps
/// its id.
fn event_id(payment: PaymentId, sequence: u32) -> EventId {
    let hash = Sha256::new().chain_update(payment.bits().to_be_bytes()).chain_update(sequence.to_be_bytes()).finalize();
    let mut random = [0; 10];
    random.copy_from_slice(&hash[..10]);
    EventId::new(payment.created_at(), random)
}
