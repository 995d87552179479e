//! Resolution of exceptions: assignment of unmatched transfers, decisions of the merchant, and refunds.

use std::collections::BTreeMap;

use super::{Credit, Disposition, Finality, Payment, Rejection, Route, State, Transition};
use crate::{
    account::AccountName,
    fields::{Metadata, Violation},
    hive::{self, Operation},
    ledger::{Transfer, TxId, refund_memo_of},
    money::{Currency, Money},
    mutant,
    time::Timestamp,
};

/// Maximum number of refunds stored per payment.
pub(super) const MAX_REFUNDS: usize = 500;
/// Maximum characters of a note.
pub const NOTE_MAX_CHARS: usize = 500;

/// A merchant's decision about the exceptions of a payment. It does not change the state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolution {
    /// The decision.
    pub kind: ResolutionKind,
    /// The id of the API key that made the decision.
    pub by: String,
    /// When it was made.
    pub at: Timestamp,
    /// The merchant's note.
    pub note: String,
    /// The related transaction, such as a refund.
    pub tx_id: Option<TxId>,
}

/// The kind of decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResolutionKind {
    /// The money is accepted as received; no refund is due.
    Accepted,
    /// The money was refunded.
    Refunded,
    /// No action is taken.
    Ignored,
}

impl ResolutionKind {
    /// Every kind, in the order of the interface.
    pub const ALL: [Self; 3] = [Self::Accepted, Self::Refunded, Self::Ignored];

    /// Returns the wire name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Refunded => "refunded",
            Self::Ignored => "ignored",
        }
    }
}

/// The scope of a decision to accept money.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Acceptance {
    /// The number of transfers covered: no refund is due for them.
    pub transfers: u64,
    /// The number of refunds before the decision: they do not reduce later refunds due.
    pub refunds: u64,
    /// Whether the payment was in a final state: only then the decision covers counted transfers.
    pub had_ended: bool,
}

/// A refund transfer on the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refund {
    /// The transaction.
    pub tx_id: TxId,
    /// The operation's index in it.
    pub op_in_tx: u32,
    /// Who received it.
    pub to: AccountName,
    /// The refunded amount.
    pub money: Money,
    /// The time of its block.
    pub at: Timestamp,
}

/// The assignment of an unmatched transfer to a payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// The irreversible transfer.
    pub transfer: Transfer,
    /// [`Route::Manual`] if a person decided, [`Route::Wallet`] if its memo names the payment.
    pub route: Route,
    /// Whether the memo was more than the plain `pos-<id>`.
    pub memo_normalized: bool,
    /// Who assigned it.
    pub by: String,
}

/// A refund due to a payer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefundDue {
    /// The payer.
    pub to: AccountName,
    /// The amount due.
    pub money: Money,
}

/// A prepared refund, to be signed by the merchant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefundPlan {
    /// The sender: the account that was paid.
    pub from: AccountName,
    /// The recipient.
    pub to: AccountName,
    /// The amount of the refund.
    pub money: Money,
    /// The memo that identifies the payment.
    pub memo: String,
}

impl RefundPlan {
    /// Returns the operation to sign.
    #[must_use]
    pub fn operation(&self) -> Operation {
        hive::uri::transfer(Some(&self.from), &self.to, self.money, &self.memo)
    }

    /// Returns the `hive://` URI of the operation for a wallet.
    #[must_use]
    pub fn uri(&self) -> String {
        hive::uri::sign_op(&self.operation(), &hive::uri::Params::default())
    }
}

impl Payment {
    pub(super) fn resolve(&self, resolution: &Resolution, now: Timestamp) -> Result<Transition, Rejection> {
        if !self.state.is_terminal() && self.exceptions().is_empty() {
            return Err(Rejection::NothingToResolve { id: self.id });
        }
        let transfers = self.transfer_count();
        let accepted = match resolution.kind {
            kind if kind == ResolutionKind::Accepted || mutant!("every-resolution-accepts") => {
                Some(Acceptance { transfers, refunds: self.refunds.len() as u64, had_ended: self.state.is_terminal() })
            }
            // Another decision about the same transfers revokes the acceptance.
            _ => self.accepted.filter(|accepted| accepted.transfers < transfers),
        };
        let resolution = Some(resolution.clone());
        Ok(Self { resolution, decided_transfers: transfers, accepted, ..self.next(now) }.in_same_state())
    }

    /// Deletes the metadata. Amounts, states and transactions are kept for accounting.
    pub(super) fn delete_metadata(&self, now: Timestamp) -> Result<Transition, Rejection> {
        let id = self.id;
        if !self.state.is_terminal() {
            return Err(Rejection::Open { id, state: self.state });
        }
        if self.metadata.is_empty() {
            return Err(Rejection::Unchanged { id });
        }
        let mut next = Self { metadata: Metadata::new(), ..self.next(now) };
        if mutant!("deletion-takes-more") {
            next.cancel_url = None;
            next.resolution = None;
        }
        Ok(next.in_same_state())
    }

    /// Deletes the note of the resolution; the decision is kept.
    pub(super) fn delete_note(&self, now: Timestamp) -> Result<Transition, Rejection> {
        match &self.resolution {
            Some(resolution) if !resolution.note.is_empty() => {
                let resolution = Resolution { note: String::new(), ..resolution.clone() };
                Ok(Self { resolution: Some(resolution), ..self.next(now) }.in_same_state())
            }
            _ => Err(Rejection::Unchanged { id: self.id }),
        }
    }

    /// Returns whether a transfer with a refund memo for this payment is recorded as a refund.
    #[must_use]
    pub fn accepts_refund(&self, transfer: &Transfer) -> bool {
        (transfer.from == self.pay_to || mutant!("other-merchant-refunds"))
            && transfer.to != self.pay_to
            && self.refunds.len() < MAX_REFUNDS
    }

    pub(super) fn add_refund(&self, transfer: &Transfer, now: Timestamp) -> Result<Transition, Rejection> {
        // Only the account that was paid can refund, and not to itself.
        if (transfer.from != self.pay_to && !mutant!("other-merchant-refunds")) || transfer.to == self.pay_to {
            return Err(Rejection::ForeignTransfer { id: self.id });
        }
        let is_known = |r: &Refund| r.tx_id == transfer.tx_id && r.op_in_tx == transfer.position.op_in_tx;
        if self.refunds.iter().any(is_known) && !mutant!("refund-recorded-twice") {
            return Err(Rejection::Unchanged { id: self.id });
        }
        if self.refunds.len() >= MAX_REFUNDS {
            return Err(Rejection::TooManyRefunds { id: self.id });
        }
        let mut next = self.next(now);
        next.refunds.push(Refund {
            tx_id: transfer.tx_id,
            op_in_tx: transfer.position.op_in_tx,
            to: transfer.to,
            money: transfer.money,
            at: transfer.block_time,
        });
        Ok(next.in_same_state())
    }

    /// Returns the total of refunds in the payment's currency, smallest units.
    #[must_use]
    pub fn refunded_units(&self) -> u64 {
        let own = self.refunds.iter().filter(|refund| refund.money.currency == self.amount.currency);
        own.fold(0, |sum, refund| sum.saturating_add(refund.money.units))
    }

    /// Returns the refunds due by payer and currency, if the snapshot lists every transfer; see [`RefundCalculator`]
    /// for the general case.
    #[must_use]
    pub fn refunds_due(&self) -> Vec<RefundDue> {
        let mut refunds = RefundCalculator::of(self);
        self.transfers.iter().rev().for_each(|credit| refunds.add(credit));
        refunds.finish(self)
    }

    /// Prepares a refund: the requested values, completed with the largest refund due.
    ///
    /// # Errors
    /// The field that is required or invalid.
    pub fn refund_plan(
        &self,
        owed: &[RefundDue],
        to: Option<AccountName>,
        money: Option<Money>,
    ) -> Result<RefundPlan, Violation> {
        let fits = |line: &&RefundDue| {
            to.as_ref().is_none_or(|to| line.to == *to)
                && money.is_none_or(|money| line.money.currency == money.currency)
        };
        // Refunds may also be due to third parties that sent dust: prefer the largest.
        let size = |line: &&RefundDue| (line.money.currency == self.amount.currency, line.money.units);
        let line = owed.iter().rev().filter(fits).max_by_key(size);
        let last_payer = || self.transfers.iter().rev().map(|credit| credit.from).find(|p| *p != self.pay_to);
        let money = money
            .or_else(|| line.map(|line| line.money))
            .ok_or_else(|| Violation::new("amount", "is required, because nothing is owed back"))?;
        let to = to
            .or_else(|| line.map(|line| line.to))
            .or_else(last_payer)
            .ok_or_else(|| Violation::new("to", "is required: there is no payer"))?;
        if to == self.pay_to {
            return Err(Violation::new("to", format_args!("must be another account than {to}, which pays")));
        }
        Ok(RefundPlan { from: self.pay_to, to, money, memo: refund_memo_of(self.id) })
    }
}

/// Calculates the refunds due for a payment: irreversible money that does not count toward the amount, or counts for a
/// payment that did not complete, minus acceptances and refunds. For a completed payment, no refund in its currency is
/// due before the counted money is irreversible, except after a reversal.
#[derive(Debug)]
pub struct RefundCalculator {
    by_payer: BTreeMap<(AccountName, Currency), u64>,
    /// Counted money to refund: all of it if the payment did not complete, otherwise the overpayment, from the newest
    /// transfer on.
    excess: u64,
    /// The currency in which no refund is due because counted money is still reversible.
    unsettled: Option<Currency>,
    accepted: Option<Acceptance>,
}

impl RefundCalculator {
    /// Creates a calculator without transfers.
    #[must_use]
    pub fn of(payment: &Payment) -> Self {
        let excess = match payment.state {
            State::Completed => payment.paid_units().saturating_sub(payment.amount.units),
            state if state.is_terminal() => u64::MAX,
            _ => 0,
        };
        let is_unsettled = payment.state == State::Completed
            && !payment.is_reversed
            && payment.paid_units() < payment.amount.units
            && !mutant!("owed-before-payment-is-irreversible");
        let unsettled = is_unsettled.then_some(payment.amount.currency);
        let accepted = payment.accepted.filter(|_| !mutant!("accepted-is-owed-again") || payment.resolution.is_some());
        Self { by_payer: BTreeMap::new(), excess, unsettled, accepted }
    }

    /// Adds a transfer of the payment. Every transfer must be added exactly once, newest first.
    pub fn add(&mut self, credit: &Credit) {
        if credit.finality != Finality::Irreversible || self.unsettled == Some(credit.money.currency) {
            return;
        }
        let is_counted = credit.disposition == Disposition::Counted;
        if self.accepted.is_some_and(|a| credit.seq <= a.transfers && (a.had_ended || !is_counted)) {
            return;
        }
        let back = match credit.disposition {
            Disposition::Counted => self.excess.min(credit.money.units),
            Disposition::Surplus
            | Disposition::Late
            | Disposition::AfterCancel
            | Disposition::AfterFailure
            | Disposition::WrongCurrency => credit.money.units,
            Disposition::SelfTransfer | Disposition::Fee => 0,
        };
        if is_counted && !mutant!("excess-owed-to-each") {
            self.excess -= back;
        }
        if back > 0 {
            let sum = self.by_payer.entry((credit.from, credit.money.currency)).or_default();
            *sum = sum.saturating_add(back);
        }
    }

    /// Returns the refunds due by payer and currency.
    #[must_use]
    pub fn finish(self, payment: &Payment) -> Vec<RefundDue> {
        let mut owed = self.by_payer;
        // Refunds before an acceptance do not reduce later refunds due.
        let earlier = self.accepted.map_or(0, |accepted| usize::try_from(accepted.refunds).unwrap_or(usize::MAX));
        for refund in payment.refunds.iter().skip(earlier).filter(|_| !mutant!("refund-not-deducted")) {
            let mut left = refund.money.units;
            // First reduces the amount due to the recipient; the rest reduces the other amounts due, as the payer may
            // use several accounts.
            let own = (refund.to, refund.money.currency);
            if let Some(sum) = owed.get_mut(&own) {
                let settled = left.min(*sum);
                *sum -= settled;
                left -= if mutant!("refund-deducted-twice") { 0 } else { settled };
            }
            for (_, sum) in owed.iter_mut().filter(|((_, currency), _)| *currency == refund.money.currency) {
                let settled = left.min(*sum);
                *sum -= settled;
                left -= settled;
            }
        }
        let line = |((to, currency), units)| RefundDue { to, money: Money::new(units, currency) };
        owed.into_iter().filter(|(_, units)| *units > 0).map(line).collect()
    }
}
