//! What a session announces: a new status, exceptions that it did not have before, and more money of those it has.

use sha2::{Digest, Sha256};

use super::{Disposition, Effect, Exception, Payment, State, Totals, Transition};
use crate::{
    ids::{EventId, PaymentId},
    mutant,
    time::Timestamp,
};

/// What became true: announced to the merchant under one id, for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// The event's id; decided by the session and the sequence, so a crash cannot make two of it.
    pub id: EventId,
    /// The state left.
    pub from: State,
    /// The state reached; the same where only an exception is announced.
    pub to: State,
    /// The payment's sequence with this event.
    pub sequence: u32,
    /// When.
    pub at: Timestamp,
}

impl Event {
    pub(super) fn of(payment: PaymentId, (from, to): (State, State), sequence: u32, at: Timestamp) -> Self {
        Self { id: event_id(payment, sequence), from, to, sequence, at }
    }
}

/// What an unusual transfer must be of the amount to be announced where others of its kind came before: a tenth.
const NOTABLE: u128 = 10;

/// Exceptions that a session has from now on, or that more money came for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExceptionEvent {
    /// The event.
    pub event: Event,
    /// The exceptions it is about, in their order.
    pub new: Vec<Exception>,
}

impl Transition {
    /// Announces the exceptions that `before` did not have, and those that notable money came for. They rest on money that
    /// is final: a fork takes none back.
    pub(super) fn announce_exceptions(&mut self, before: &Payment, now: Timestamp) {
        let (was, is) = (before.totals(), self.payment.totals());
        let known = before.final_exceptions(&was);
        let mut new = self.payment.final_exceptions(&is);
        let seen = before.exceptions();
        if new.iter().any(|exception| *exception != Exception::Manual && !seen.contains(exception)) {
            // What was decided before was not decided about it.
            self.payment.resolution = None;
        }
        let is_reopened = before.resolution.is_some() && self.payment.resolution.is_none();
        let amount = u128::from(before.amount.units);
        let is_notable = |exception: Exception| {
            let Some(disposition) = exception.disposition().filter(|_| !mutant!("exceptions-told-once")) else {
                return false;
            };
            let [was, is] = [&was, &is].map(|totals| totals.with(disposition).irreversible_units);
            // Any number of small transfers makes few events: one for each doubling of their sum, once it is notable.
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
    /// Returns the exceptions that rest on final money.
    fn final_exceptions(&self, totals: &Totals) -> Vec<Exception> {
        let mut found = self.exceptions();
        found.retain(|exception| match exception.disposition() {
            Some(disposition) => {
                totals.with(disposition).irreversible_units > u128::from(mutant!("small-exceptions-untold"))
            }
            None => *exception != Exception::Overpaid || self.paid_units() > self.amount.units,
        });
        found
    }
}

impl Exception {
    /// Returns what the transfers are that it rests on; none where it is about more than transfers of one kind.
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

/// An event that is announced anew after a restore keeps its id: nothing but the payment and the sequence make it.
fn event_id(payment: PaymentId, sequence: u32) -> EventId {
    let hash = Sha256::new().chain_update(payment.bits().to_be_bytes()).chain_update(sequence.to_be_bytes()).finalize();
    let mut random = [0; 10];
    random.copy_from_slice(&hash[..10]);
    EventId::new(payment.created_at(), random)
}
