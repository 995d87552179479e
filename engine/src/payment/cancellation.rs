//! Cancellation: the request is durable at once, and block time decides it, as it decides expiry.
//!
//! A transfer in flight when the cancellation is requested is in a block within seconds. The request therefore sets a
//! cutoff a few blocks ahead. Transfers in blocks up to the cutoff count; the first irreversible block after the cutoff
//! decides the request.

use std::time::Duration;

use super::{Disposition, Finality, Payment, Rejection, State, Transition};
use crate::{mutant, time::Timestamp};

/// Block intervals from the request to its cutoff.
const MARGIN_BLOCKS: u32 = 5;
/// The same if the customer may be signing: the page reported an opened wallet or a transaction id.
const MARGIN_BLOCKS_WITH_WALLET: u32 = 20;

/// Who requested a cancellation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Canceller {
    /// The payer.
    Customer,
    /// The payee.
    Merchant,
}

impl Canceller {
    /// Returns the wire name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Customer => "customer",
            Self::Merchant => "merchant",
        }
    }
}

/// A cancellation request. A payment has at most one; the first is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cancellation {
    /// Who requested it.
    pub by: Canceller,
    /// When it was requested.
    pub requested_at: Timestamp,
    /// The last block time at which a transfer still counts.
    pub cutoff: Timestamp,
    /// When it was dropped because money counted; `None` while it is pending or in effect.
    pub dropped_at: Option<Timestamp>,
}

impl Payment {
    /// Returns the cancellation request that is pending or in effect; `None` once it was dropped.
    #[must_use]
    pub fn active_cancellation(&self) -> Option<&Cancellation> {
        self.cancellation.as_ref().filter(|request| request.dropped_at.is_none())
    }

    /// Returns the cancellation request that is not decided yet.
    #[must_use]
    pub fn pending_cancellation(&self) -> Option<&Cancellation> {
        self.active_cancellation().filter(|_| self.state == State::Pending)
    }

    /// Returns the block time after which an irreversible block ends the payment.
    #[must_use]
    pub fn due_at(&self) -> Timestamp {
        self.pending_cancellation().map_or_else(|| self.deadline(), |request| request.cutoff)
    }

    pub(super) fn cancel(
        &self,
        by: Canceller,
        block_interval: Duration,
        now: Timestamp,
    ) -> Result<Transition, Rejection> {
        let id = self.id;
        match self.state {
            State::UserCancelled => return Err(Rejection::AlreadyCancelled { id }),
            State::Pending => {}
            state => return Err(Rejection::NotPending { id, state }),
        }
        if self.pending_cancellation().is_some() {
            return Err(Rejection::AlreadyCancelled { id });
        }
        if let Some(claim) = self.claim.as_ref().filter(|_| !mutant!("cancel-ignores-claim")) {
            return Err(Rejection::InFlight { id, tx_id: claim.tx_id });
        }
        if self.seen_units() > 0 && !mutant!("cancel-ignores-transfers") {
            return Err(Rejection::Detected { id });
        }
        if self.is_expired(now) && !mutant!("cancelled-after-the-deadline") {
            return Err(Rejection::Expired { id });
        }
        let blocks = if self.wallet_opened_at.is_some() { MARGIN_BLOCKS_WITH_WALLET } else { MARGIN_BLOCKS };
        let blocks = if mutant!("cutoff-next-block") { 1 } else { blocks };
        let cutoff = self.deadline().min(now + block_interval * blocks);
        let mut next = self.next(now);
        next.cancellation = Some(Cancellation { by, requested_at: now, cutoff, dropped_at: None });
        if mutant!("cancelled-immediately") {
            return Ok(next.in_state(self, State::UserCancelled, now));
        }
        Ok(next.in_same_state())
    }

    pub(super) fn report_wallet(&self, now: Timestamp) -> Result<Transition, Rejection> {
        let id = self.id;
        if self.state != State::Pending {
            return Err(Rejection::NotPending { id, state: self.state });
        }
        if let Some(request) = self.pending_cancellation() {
            return Err(Rejection::Cancelling { id, cutoff: request.cutoff });
        }
        if self.is_expired(now) {
            return Err(Rejection::Expired { id });
        }
        if self.wallet_opened_at.is_some() && !mutant!("wallet-reported-again") {
            return Err(Rejection::Unchanged { id });
        }
        Ok(Self { wallet_opened_at: Some(now), ..self.next(now) }.in_same_state())
    }

    /// Decides the cancellation request. Every transfer up to `irreversible_time`, which is later than the cutoff, is
    /// stored.
    pub(super) fn decide_cancellation(
        &self,
        irreversible_time: Timestamp,
        now: Timestamp,
    ) -> Result<Transition, Rejection> {
        let mut next = self.next(now);
        if self.irreversible_counted_units() == 0 || mutant!("cancel-decided-despite-transfers") {
            // Transfers that become irreversible from now on have missed the cutoff, whether or not they also missed
            // the deadline.
            for credit in &mut next.transfers {
                let is_open = credit.disposition == Disposition::Counted && credit.finality != Finality::Irreversible;
                if is_open || credit.disposition == Disposition::Late {
                    credit.disposition = Disposition::AfterCancel;
                }
            }
            return Ok(next.in_state(self, State::UserCancelled, now));
        }
        next.drop_cancellation(now);
        // The payment continues as if no request had been made: transfers that missed only the cutoff count, in chain
        // order.
        let mut paid_by = None;
        for at in next.after_cutoff() {
            next.transfers[at].disposition =
                if paid_by.is_some() { Disposition::Surplus } else { Disposition::Counted };
            if paid_by.is_none() && next.is_paid() {
                paid_by = Some(next.transfers[at].tx_id);
            }
        }
        Ok(match paid_by {
            Some(tx_id) => next.completed(self, tx_id, now),
            None if irreversible_time > self.deadline() => next.in_state(self, State::SystemCancelled, now),
            None => next.in_same_state(),
        })
    }

    /// Drops the request of a payment that was paid in time: transfers after the cutoff are surplus.
    pub(super) fn drop_cancellation_when_paid(&mut self, now: Timestamp) {
        if self.active_cancellation().is_none() {
            return;
        }
        self.drop_cancellation(now);
        if mutant!("cutoff-money-stays-cancelled") {
            return;
        }
        for at in self.after_cutoff() {
            self.transfers[at].disposition = Disposition::Surplus;
        }
    }

    fn drop_cancellation(&mut self, now: Timestamp) {
        if let Some(request) = &mut self.cancellation {
            request.dropped_at = Some(now);
        }
    }

    /// Returns the indexes of the transfers that missed the cutoff, in chain order.
    fn after_cutoff(&self) -> Vec<usize> {
        let missed = |at: &usize| self.transfers[*at].disposition == Disposition::AfterCancel;
        let mut found: Vec<_> = (0..self.transfers.len()).filter(missed).collect();
        found.sort_by_key(|at| self.transfers[*at].block.map(|block| block.position));
        found
    }

    /// Returns the irreversible money that counts, without fees, smallest units.
    fn irreversible_counted_units(&self) -> u64 {
        let counted = self.totals().with(Disposition::Counted).irreversible_units;
        u64::try_from(counted).unwrap_or(u64::MAX)
    }
}
