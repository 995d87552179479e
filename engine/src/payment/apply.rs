//! The payment state machine: commands, transitions and effects.
//!
//! Apply, commit, then act: [`Payment::apply`] has no side effects; it returns the next snapshot, the events to
//! announce and the effects to run once the snapshot is durable.

use std::{sync::Arc, time::Duration};

use super::{
    Assignment, Canceller, Claim, ClaimFinality, Credit, CreditBlock, Disposition, Event, ExceptionEvent, FeeMode,
    Finality, Payment, RefundEvent, Resolution, Route, State, resolution::MAX_REFUNDS,
};
use crate::{
    ids::{EventId, PaymentId},
    ledger::{Transfer, TxId},
    mutant,
    time::Timestamp,
    x402::Reason,
};

/// A command to a payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Request cancellation. The first irreversible block after the cutoff decides the request.
    Cancel {
        /// Who requests it.
        by: Canceller,
        /// The block interval of the ledger; the cutoff is a number of intervals ahead.
        block_interval: Duration,
    },
    /// The checkout page reported an opened wallet or a transaction id.
    ReportWallet,
    /// Decide cancellation and expiry: every block up to `irreversible_time` has been read and is irreversible.
    Expire {
        /// The time of the newest irreversible block whose transfers are all credited.
        irreversible_time: Timestamp,
    },
    /// A transfer for this payment was found in a block.
    Credit {
        /// The transfer.
        transfer: Transfer,
        /// The finality of its block.
        finality: Finality,
        /// How it was received.
        route: Route,
        /// Whether the memo differs from the plain `pos-<id>`.
        memo_normalized: bool,
    },
    /// A fork removed the block of this transfer.
    Orphan {
        /// The transfer's transaction.
        tx_id: TxId,
        /// The index of the operation.
        op_in_tx: u32,
    },
    /// Claim the payment for a verified signed transaction.
    Claim(Arc<Claim>),
    /// The claimed transaction reached the finality that its claim requires.
    Settle {
        /// The claimed transaction.
        tx_id: TxId,
        /// The finality reached.
        evidence: ClaimFinality,
        /// The block, unless it is only accepted by a node.
        block: Option<CreditBlock>,
    },
    /// The chain definitively rejected the claimed transaction before it was accepted.
    Refuse {
        /// The claimed transaction.
        tx_id: TxId,
        /// The reason returned to the payer, now and for repeated requests.
        reason: Reason,
        /// The message for people.
        message: String,
    },
    /// The outcome of the claimed transaction is unknown after the wait for it.
    MarkUnknown {
        /// The claimed transaction.
        tx_id: TxId,
    },
    /// The claimed transaction expired: an irreversible block is later than its expiration, and no block contains it.
    MarkExpired {
        /// The claimed transaction.
        tx_id: TxId,
        /// The time of the irreversible block.
        irreversible_time: Timestamp,
    },
    /// Assign an unmatched transfer to this payment.
    Assign(Assignment),
    /// Resolve the exceptions by a decision of the merchant.
    Resolve(Resolution),
    /// Delete the metadata.
    DeleteMetadata,
    /// Delete the note of the resolution.
    DeleteNote,
    /// Record an irreversible refund transfer from the account that was paid.
    Refund(Transfer),
}

/// The reason why a command was rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// The payment is no longer pending.
    #[error("payment {id} is {state}, not pending")]
    NotPending {
        /// The payment.
        id: PaymentId,
        /// The state.
        state: State,
    },
    /// The payment has expired, though no irreversible block confirms it yet.
    #[error("payment {id} has expired")]
    Expired {
        /// The payment.
        id: PaymentId,
    },
    /// A transfer for it was detected.
    #[error("a payment for {id} is already on its way")]
    Detected {
        /// The payment.
        id: PaymentId,
    },
    /// A signed transaction for it is in flight.
    #[error("transaction {tx_id} for {id} is in flight")]
    InFlight {
        /// The payment.
        id: PaymentId,
        /// The claimed transaction.
        tx_id: TxId,
    },
    /// Cancellation was already requested.
    #[error("the cancellation of payment {id} was requested before")]
    AlreadyCancelled {
        /// The payment.
        id: PaymentId,
    },
    /// Cancellation is pending: new transactions are not accepted.
    #[error("payment {id} is being cancelled")]
    Cancelling {
        /// The payment.
        id: PaymentId,
        /// The last block time at which a transfer still counts.
        cutoff: Timestamp,
    },
    /// No irreversible block is later than its expiry or cutoff.
    #[error("payment {id} ends after {ends_at}")]
    NotDue {
        /// The payment.
        id: PaymentId,
        /// The block time that must have passed.
        ends_at: Timestamp,
    },
    /// There is no open claim of this transaction.
    #[error("payment {id} has no open claim on {tx_id}")]
    NoSuchClaim {
        /// The payment.
        id: PaymentId,
        /// The transaction.
        tx_id: TxId,
    },
    /// The command contains no new information.
    #[error("payment {id} knows this already")]
    Unchanged {
        /// The payment.
        id: PaymentId,
    },
    /// The recipient of the transfer is not an account of this payment.
    #[error("the transfer does not go to an account of payment {id}")]
    ForeignTransfer {
        /// The payment.
        id: PaymentId,
    },
    /// There are no exceptions to resolve.
    #[error("payment {id} has nothing to resolve")]
    NothingToResolve {
        /// The payment.
        id: PaymentId,
    },
    /// The payment can still change: its metadata may be needed for fulfilment.
    #[error("payment {id} is {state} and can still change")]
    Open {
        /// The payment.
        id: PaymentId,
        /// The state.
        state: State,
    },
    /// The payment has the maximum number of refunds.
    #[error("payment {id} keeps {MAX_REFUNDS} refunds already")]
    TooManyRefunds {
        /// The payment.
        id: PaymentId,
    },
}

/// An effect to run once the snapshot is durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Broadcast the claimed transaction.
    Broadcast(TxId),
    /// Notify the merchant.
    Notify(EventId),
}

/// A transition of a payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transition {
    /// The payment after the transition.
    pub payment: Payment,
    /// The status event; a command causes at most one state change.
    pub event: Option<Event>,
    /// The exception event, announced after the status event.
    pub exception: Option<ExceptionEvent>,
    /// The event of a new refund.
    pub refund: Option<RefundEvent>,
    /// Effects to run after the commit, in order.
    pub effects: Vec<Effect>,
    /// New and changed transfers, to be stored as rows with the snapshot. The memo of a changed transfer may be
    /// truncated.
    pub rows: Vec<Credit>,
}

impl Payment {
    /// Applies a command at `now` (the later of the wall clock and the head block's time). The transfers of
    /// [`Payment::required_rows`] must be loaded if the payment has them.
    ///
    /// # Errors
    /// A [`Rejection`] if the command changes nothing.
    pub fn apply(&self, command: &Command, now: Timestamp) -> Result<Transition, Rejection> {
        let mut step = self.step(command, now)?;
        step.announce_exceptions(self, now);
        step.announce_refund(self, now);
        step.rows = self.changed_rows(&step.payment);
        step.payment.trim_listed();
        Ok(step)
    }

    fn step(&self, command: &Command, now: Timestamp) -> Result<Transition, Rejection> {
        match command {
            Command::Cancel { by, block_interval } => self.cancel(*by, *block_interval, now),
            Command::ReportWallet => self.report_wallet(now),
            Command::Expire { irreversible_time } => self.expire(*irreversible_time, now),
            Command::Credit { transfer, finality, route, memo_normalized } => {
                self.credit(transfer, *finality, *route, *memo_normalized, now)
            }
            Command::Orphan { tx_id, op_in_tx } => self.orphan(*tx_id, *op_in_tx, now),
            Command::Claim(claim) => self.add_claim(claim, now),
            Command::Settle { tx_id, evidence, block } => self.settle(*tx_id, *evidence, *block, now),
            Command::Refuse { tx_id, .. } => self.refuse(*tx_id, now),
            Command::MarkUnknown { tx_id } => self.mark_unknown(*tx_id, now),
            Command::MarkExpired { tx_id, irreversible_time } => self.mark_expired(*tx_id, *irreversible_time, now),
            Command::Assign(Assignment { transfer, route, memo_normalized, .. }) => {
                self.credit(transfer, Finality::Irreversible, *route, *memo_normalized, now)
            }
            Command::Resolve(resolution) => self.resolve(resolution, now),
            Command::DeleteMetadata => self.delete_metadata(now),
            Command::DeleteNote => self.delete_note(now),
            Command::Refund(transfer) => self.add_refund(transfer, now),
        }
    }

    fn expire(&self, irreversible_time: Timestamp, now: Timestamp) -> Result<Transition, Rejection> {
        let id = self.id;
        if self.state != State::Pending {
            return Err(Rejection::NotPending { id, state: self.state });
        }
        if let Some(claim) = self.claim.as_ref().filter(|_| !mutant!("expiry-ignores-claim")) {
            return Err(Rejection::InFlight { id, tx_id: claim.tx_id });
        }
        let ends_at = self.due_at();
        if irreversible_time <= ends_at {
            return Err(Rejection::NotDue { id, ends_at });
        }
        if self.pending_cancellation().is_some() {
            return self.decide_cancellation(irreversible_time, now);
        }
        Ok(self.next(now).in_state(self, State::SystemCancelled, now))
    }

    fn credit(
        &self,
        transfer: &Transfer,
        finality: Finality,
        route: Route,
        memo_normalized: bool,
        now: Timestamp,
    ) -> Result<Transition, Rejection> {
        let block = CreditBlock { position: transfer.position, time: transfer.block_time };
        let is_it = |c: &Credit| c.tx_id == transfer.tx_id && c.op_in_tx == transfer.position.op_in_tx;
        let known = self.transfers.iter().position(is_it).filter(|_| !mutant!("transfers-not-deduped"));
        // Checked before cloning the snapshot: most repeated sightings are rejected.
        let is_unchanged = known.is_some_and(|at| self.is_unchanged(&self.transfers[at], finality, block));
        if is_unchanged && !mutant!("written-as-it-was") {
            return Err(Rejection::Unchanged { id: self.id });
        }
        let disposition = self.judge(transfer)?;
        let mut next = self.next(now);
        let is_unusual = |disposition| !matches!(disposition, Disposition::Counted | Disposition::Fee);
        if finality == Finality::Irreversible && is_unusual(disposition) && !mutant!("decision-covers-what-follows") {
            let decided = |c: &Credit| c.seq <= self.decided_transfers && is_unusual(c.disposition);
            if !known.is_some_and(|at| decided(&self.transfers[at])) {
                // The previous decision did not cover it.
                next.resolution = None;
            }
        }
        match known {
            Some(at) => {
                let known = &mut next.transfers[at];
                known.finality = finality;
                known.block = Some(block);
                // The block after a fork may be on the other side of the deadline.
                known.disposition = disposition;
            }
            None => {
                let route = if self.is_claimed(transfer.tx_id) { Route::X402 } else { route };
                next.transfers.push(Credit {
                    seq: self.transfer_count() + 1,
                    tx_id: transfer.tx_id,
                    op_in_tx: transfer.position.op_in_tx,
                    block: Some(block),
                    from: transfer.from,
                    to: transfer.to,
                    money: transfer.money,
                    memo: transfer.memo.clone(),
                    finality,
                    disposition,
                    route,
                    memo_normalized,
                });
            }
        }
        let satisfied = self.state == State::Pending && next.claim_is_satisfied(transfer.tx_id);
        next.drop_decided_claim();
        if !self.state.is_terminal() && (satisfied || next.is_paid()) {
            return Ok(next.completed(self, transfer.tx_id, now));
        }
        Ok(next.in_same_state())
    }

    /// Returns whether another sighting of a transfer changes nothing.
    fn is_unchanged(&self, known: &Credit, finality: Finality, block: CreditBlock) -> bool {
        if known.finality == Finality::Irreversible {
            return true;
        }
        let is_same_block = match known.block {
            // Another reversible sighting matters only if the block changed.
            Some(before) => before == block,
            // Completed when a node accepted it: the block is recorded when it is irreversible. After a fork it is
            // recorded at once.
            None => self.state.is_terminal(),
        };
        known.finality == finality && is_same_block
    }

    pub(super) fn is_paid(&self) -> bool {
        if mutant!("reversible-completes") {
            return self.seen_units() >= self.amount.units;
        }
        if mutant!("partial-amount-completes") {
            return self.paid_units() > 0;
        }
        if mutant!("exact-amount-is-too-little") {
            return self.paid_units() > self.amount.units;
        }
        self.paid_units() >= self.amount.units
    }

    /// Returns the disposition of a transfer. The order of the rules is their precedence.
    fn judge(&self, transfer: &Transfer) -> Result<Disposition, Rejection> {
        let to_fee_account = matches!(&self.quote.fee_mode, FeeMode::Split { account } if *account == transfer.to);
        if transfer.to != self.pay_to && !to_fee_account {
            return Err(Rejection::ForeignTransfer { id: self.id });
        }
        if transfer.money.currency != self.amount.currency && !mutant!("wrong-currency-counts") {
            return Ok(Disposition::WrongCurrency);
        }
        if transfer.from == self.pay_to && !mutant!("self-transfer-counts") {
            return Ok(Disposition::SelfTransfer);
        }
        if to_fee_account {
            return Ok(Disposition::Fee);
        }
        // The transfer that completed the payment stays counted, whatever block a fork moves it to.
        let completed_it = self.paid_by == Some(transfer.tx_id);
        Ok(match self.state {
            State::Completed if !completed_it => Disposition::Surplus,
            State::Failed => Disposition::AfterFailure,
            State::UserCancelled => Disposition::AfterCancel,
            State::SystemCancelled => Disposition::Late,
            // A claim was made in time; the block time of its transaction does not matter.
            _ if transfer.block_time > self.deadline()
                && !mutant!("late-transfer-counts")
                && !completed_it
                && !self.is_claimed(transfer.tx_id) =>
            {
                Disposition::Late
            }
            // Evaluated again when the block is irreversible and when the request is decided.
            _ if self.pending_cancellation().is_some_and(|request| transfer.block_time > request.cutoff)
                && !mutant!("transfer-after-cutoff-counts") =>
            {
                Disposition::AfterCancel
            }
            _ => Disposition::Counted,
        })
    }

    fn orphan(&self, tx_id: TxId, op_in_tx: u32, now: Timestamp) -> Result<Transition, Rejection> {
        let known = self.transfers.iter().position(|c| c.tx_id == tx_id && c.op_in_tx == op_in_tx);
        let Some(at) = known.filter(|at| self.transfers[*at].finality == Finality::Reversible) else {
            return Err(Rejection::Unchanged { id: self.id });
        };
        let mut next = self.next(now);
        next.transfers[at].finality = Finality::Orphaned;
        Ok(next.in_same_state())
    }

    fn add_claim(&self, claim: &Arc<Claim>, now: Timestamp) -> Result<Transition, Rejection> {
        let id = self.id;
        if self.state != State::Pending {
            return Err(Rejection::NotPending { id, state: self.state });
        }
        if let Some(claim) = self.claim.as_ref().filter(|_| !mutant!("claim-replaces-claim")) {
            return Err(Rejection::InFlight { id, tx_id: claim.tx_id });
        }
        if self.is_expired(now) {
            return Err(Rejection::Expired { id });
        }
        if let Some(request) = self.pending_cancellation().filter(|_| !mutant!("claim-while-cancelling")) {
            return Err(Rejection::Cancelling { id, cutoff: request.cutoff });
        }
        // The full amount is already in a reversible block: a second payment would have to be refunded. A transfer that
        // the scanner found first is a wallet payment: the caller may have copied it from the chain.
        let is_seen = self.transfers.iter().any(|credit| credit.tx_id == claim.tx_id);
        if self.seen_units() >= self.amount.units || is_seen {
            return Err(Rejection::Detected { id });
        }
        let effects = vec![Effect::Broadcast(claim.tx_id)];
        let next = Self { claim: Some(Arc::clone(claim)), ..self.next(now) };
        Ok(Transition { effects, ..next.in_same_state() })
    }

    fn settle(
        &self,
        tx_id: TxId,
        evidence: ClaimFinality,
        block: Option<CreditBlock>,
        now: Timestamp,
    ) -> Result<Transition, Rejection> {
        let claim = self.open_claim(tx_id)?;
        let irreversible = evidence == ClaimFinality::Irreversible;
        let finality = if irreversible { Finality::Irreversible } else { Finality::Reversible };
        let mut next = self.next(now);
        for transfer in &claim.transfers {
            let known = next.transfers.iter_mut().find(|c| c.tx_id == tx_id && c.op_in_tx == transfer.op_in_tx);
            if let Some(known) = known {
                known.finality = known.finality.max(finality);
                known.block = block.or(known.block);
                continue;
            }
            let to_payee = transfer.to == self.pay_to;
            let counted = if to_payee { Disposition::Counted } else { Disposition::Fee };
            let surplus = self.state == State::Completed && to_payee && !mutant!("late-claim-counts");
            let seq = next.transfer_count() + 1;
            next.transfers.push(Credit {
                seq,
                tx_id,
                op_in_tx: transfer.op_in_tx,
                block,
                from: claim.payer,
                to: transfer.to,
                money: transfer.money,
                memo: transfer.memo.clone(),
                finality,
                disposition: if surplus { Disposition::Surplus } else { counted },
                route: Route::X402,
                memo_normalized: false,
            });
        }
        next.drop_decided_claim();
        if self.state.is_terminal() {
            return if next.transfers == self.transfers && next.claim == self.claim {
                Err(Rejection::Unchanged { id: self.id })
            } else {
                Ok(next.in_same_state())
            };
        }
        Ok(next.completed(self, tx_id, now))
    }

    fn refuse(&self, tx_id: TxId, now: Timestamp) -> Result<Transition, Rejection> {
        self.open_claim(tx_id)?;
        // After an unknown outcome a node's rejection is not sufficient: only an irreversible block decides.
        if self.state != State::Pending {
            return Err(Rejection::NotPending { id: self.id, state: self.state });
        }
        let claim = self.claim.clone().filter(|_| mutant!("refused-claim-stays"));
        Ok(Self { claim, ..self.next(now) }.in_same_state())
    }

    fn mark_unknown(&self, tx_id: TxId, now: Timestamp) -> Result<Transition, Rejection> {
        self.open_claim(tx_id)?;
        if self.state != State::Pending {
            return Err(Rejection::NotPending { id: self.id, state: self.state });
        }
        Ok(self.next(now).in_state(self, State::Processing, now))
    }

    fn mark_expired(&self, tx_id: TxId, irreversible_time: Timestamp, now: Timestamp) -> Result<Transition, Rejection> {
        let claim = self.open_claim(tx_id)?;
        if irreversible_time <= claim.expiration {
            return Err(Rejection::NotDue { id: self.id, ends_at: claim.expiration });
        }
        let mut next = Self { claim: None, ..self.next(now) };
        for credit in next.transfers.iter_mut().filter(|c| c.tx_id == tx_id && c.finality == Finality::Reversible) {
            credit.finality = Finality::Orphaned;
        }
        match self.state {
            State::Processing => Ok(next.in_state(self, State::Failed, now)),
            State::Completed if self.paid_by == Some(tx_id) => {
                next.is_reversed = true;
                Ok(next.in_same_state())
            }
            _ => Ok(next.in_same_state()),
        }
    }

    fn open_claim(&self, tx_id: TxId) -> Result<&Claim, Rejection> {
        self.claim.as_deref().filter(|claim| claim.tx_id == tx_id).ok_or(Rejection::NoSuchClaim { id: self.id, tx_id })
    }

    fn is_claimed(&self, tx_id: TxId) -> bool {
        self.claim.as_ref().is_some_and(|claim| claim.tx_id == tx_id)
    }

    /// Returns whether every transfer of the claimed transaction is in a block and the claim requires no more.
    fn claim_is_satisfied(&self, tx_id: TxId) -> bool {
        self.claim.as_ref().is_some_and(|claim| {
            claim.tx_id == tx_id
                && claim.finality != ClaimFinality::Irreversible
                && claim.transfers.iter().all(|transfer| {
                    self.transfers.iter().any(|credit| {
                        credit.tx_id == tx_id
                            && credit.op_in_tx == transfer.op_in_tx
                            && credit.block.is_some()
                            && credit.finality != Finality::Orphaned
                    })
                })
        })
    }

    /// Drops the claim once all of its transfers are irreversible.
    fn drop_decided_claim(&mut self) {
        let decided = self.claim.as_ref().is_some_and(|claim| {
            claim.transfers.iter().all(|transfer| {
                self.transfers.iter().any(|credit| {
                    credit.tx_id == claim.tx_id
                        && credit.op_in_tx == transfer.op_in_tx
                        && (credit.finality == Finality::Irreversible || mutant!("claim-dropped-while-reversible"))
                })
            })
        });
        if decided {
            self.claim = None;
        }
    }

    pub(super) fn completed(mut self, before: &Self, tx_id: TxId, now: Timestamp) -> Transition {
        self.drop_cancellation_when_paid(now);
        self.completed_at = Some(if mutant!("completed-when-it-was-opened") { self.created_at } else { now });
        self.paid_by = Some(tx_id);
        self.in_state(before, State::Completed, now)
    }

    pub(super) fn next(&self, now: Timestamp) -> Self {
        Self { version: self.version + 1, updated_at: now, ..self.clone() }
    }

    /// Returns a transition without a state change.
    pub(super) fn in_same_state(self) -> Transition {
        Transition { payment: self, event: None, exception: None, refund: None, effects: Vec::new(), rows: Vec::new() }
    }

    /// Returns a transition to a new state with its event.
    pub(super) fn in_state(mut self, before: &Self, to: State, now: Timestamp) -> Transition {
        assert!(!before.state.is_terminal(), "terminal is terminal: {} cannot leave {}", before.id, before.state);
        self.state = to;
        self.previous_state = Some(before.state);
        self.sequence += u32::from(!mutant!("sequence-not-incremented"));
        let event = Event::of(self.id, (before.state, to), self.sequence, now);
        let effects = vec![Effect::Notify(event.id)];
        Transition { payment: self, event: Some(event), exception: None, refund: None, effects, rows: Vec::new() }
    }
}
