//! What a session announces: a new status, and exceptions that it did not have before.

use sha2::{Digest, Sha256};

use super::{Disposition, Effect, Exception, Payment, State, Transition};
use crate::{
    ids::{EventId, PaymentId},
    time::Timestamp,
};

/// What became true: announced to the merchant under one id, for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// The event's id; decided by the session and the sequence, so a crash cannot make two of it.
    pub id: EventId,
    /// The state left.
    pub from: State,
    /// The state reached; the same where only an exception is new.
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

/// Exceptions that a session has from now on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExceptionEvent {
    /// The event.
    pub event: Event,
    /// The exceptions that are new, in their order.
    pub new: Vec<Exception>,
}

impl Transition {
    /// Announces the exceptions that `before` did not have. They rest on money that is final: a fork takes none back.
    pub(super) fn announce_exceptions(&mut self, before: &Payment, now: Timestamp) {
        let known = before.final_exceptions();
        let mut new = self.payment.final_exceptions();
        new.retain(|exception| !known.contains(exception));
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
    fn final_exceptions(&self) -> Vec<Exception> {
        let totals = self.totals();
        let mut found = self.exceptions();
        found.retain(|exception| {
            let disposition = match exception {
                Exception::PaidAgain => Disposition::Surplus,
                Exception::PaidLate => Disposition::Late,
                Exception::PaidAfterCancel => Disposition::AfterCancel,
                Exception::PaidAfterFailure => Disposition::AfterFailure,
                Exception::WrongCurrency => Disposition::WrongCurrency,
                Exception::SelfTransfer => Disposition::SelfTransfer,
                Exception::Overpaid => return self.paid_units() > self.amount.units,
                Exception::Underpaid | Exception::Manual | Exception::SettlementReversed => return true,
            };
            totals.with(disposition).irreversible_units > 0
        });
        found
    }
}

/// An event that is announced anew after a restore keeps its id: nothing but the payment and the sequence make it.
fn event_id(payment: PaymentId, sequence: u32) -> EventId {
    let hash = Sha256::new().chain_update(payment.bits().to_be_bytes()).chain_update(sequence.to_be_bytes()).finalize();
    let mut random = [0; 10];
    random.copy_from_slice(&hash[..10]);
    EventId::new(payment.made_at(), random)
}
