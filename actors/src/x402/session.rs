//! Payments for a session: verified, claimed, and followed until their outcome is known.

use std::sync::Arc;

use engine::{
    account::AccountName,
    ids::PaymentId,
    ledger::TxId,
    merchant::Merchant,
    mutant,
    payment::{Claim, Command, Payment, Rejection, State},
    x402::{
        ClaimOutcome, ClaimRecord, Expected, PaymentPayload, Purpose, Reason, Refused, Requirements, candidate_ids,
    },
};

use crate::{
    chain::submission::MAX_WAIT_FOR_OUTCOME,
    error::EngineError,
    payments::messages::SessionError,
    x402::{
        checks::{Checked, MIN_WAIT, PriorClaim, assigned, duplicate, sent_by_wallet},
        handle::{Settled, Target, X402, X402Error},
    },
};

impl X402 {
    pub(crate) async fn settle_session(&self, id: PaymentId, payload: &PaymentPayload) -> Result<Settled, X402Error> {
        let payment = self.session(id).await?;
        match self.find_claim(payment.pay_to, payload).await? {
            PriorClaim::None => {}
            PriorClaim::SamePayment(claimed) if claimed.purpose == Purpose::Session(id) => {
                return self.follow_session(id, &claimed, payload, true).await;
            }
            prior => return Err(duplicate(&prior, &Target::Session(id))),
        }
        // A wallet payment has no receipt: its transaction is public, and anybody could submit it.
        if let Some(tx_id) = wallet_transfer(&payment, payload) {
            return Err(self.wallet_payment(tx_id, payload).await.into());
        }
        let checked = match self.check_session(&payment, payload).await {
            Ok(checked) => checked,
            // A concurrent identical request may have claimed it, and even settled it, in the meantime.
            Err(refused) => match self.claimed_for(&payment, payload).await? {
                Some(claimed) => return self.follow_session(id, &claimed, payload, true).await,
                None => return Err(refused),
            },
        };
        let now = self.access.now();
        let claim = Claim {
            tx_id: checked.authorized.tx_id,
            nonce: payload.nonce.clone(),
            identifier: payload.identifier.clone(),
            proof: self.proof(payload, &checked),
            payer: checked.presented.payer,
            transfers: checked.presented.transfers,
            signed_json: payload.transaction.to_condenser_json(),
            expiration: payload.transaction.expiration,
            claimed_at: now,
            finality: self.access.context.settings.x402.finality_of(payment.quote.usd_cents),
        };
        let (payer, tx_id) = (claim.payer, claim.tx_id);
        let claimed = ClaimRecord {
            tx_id,
            pay_to: payment.pay_to,
            nonce: claim.nonce.clone(),
            identifier: claim.identifier.clone(),
            proof: claim.proof.clone(),
            purpose: Purpose::Session(id),
            outcome: ClaimOutcome::Open,
            at: now,
        };
        if mutant!("broadcast-before-claim") {
            let _ = self.ledger.nodes.broadcast(&claim.signed_json).await;
        }
        match self.payments.order(id, Command::Claim(Arc::new(claim)), None).await {
            Ok(_) => self.follow_session(id, &claimed, payload, false).await,
            Err(SessionError::Claimed(other)) => match self.match_claim(*other, payload) {
                PriorClaim::SamePayment(other) if other.purpose == Purpose::Session(id) => {
                    self.follow_session(id, &other, payload, true).await
                }
                prior => Err(duplicate(&prior, &Target::Session(id)).by(&payer)),
            },
            // Two identical concurrent requests: both wait for the one outcome, which may already be known.
            Err(SessionError::Rejected { rejection, payment }) => match self.claimed_for(&payment, payload).await? {
                Some(claimed) => self.follow_session(id, &claimed, payload, true).await,
                None if wallet_transfer(&payment, payload).is_some() => {
                    Err(sent_by_wallet().by(&payer).with_tx(tx_id).into())
                }
                None => Err(self.rejected(&rejection, &payment).by(&payer).into()),
            },
            Err(SessionError::Assigned(_)) => Err(assigned().by(&payer).with_tx(tx_id).into()),
            Err(error) => Err(EngineError::from(error).into()),
        }
    }

    /// Returns whether this payer claimed this payment for this session.
    async fn claimed_for(&self, payment: &Payment, payload: &PaymentPayload) -> Result<Option<ClaimRecord>, X402Error> {
        Ok(match self.find_claim(payment.pay_to, payload).await? {
            PriorClaim::SamePayment(claimed) if claimed.purpose == Purpose::Session(payment.id) => Some(*claimed),
            _ => None,
        })
    }

    /// Refuses a payment that a wallet sent. Names the transaction only to its payer.
    async fn wallet_payment(&self, tx_id: TxId, payload: &PaymentPayload) -> Refused {
        let payer = match sender(payload) {
            Some(payer) if !payload.transaction.signatures.is_empty() => payer,
            _ => return sent_by_wallet(),
        };
        match self.authorized(&payer, payload).await {
            Ok(_) => sent_by_wallet().by(&payer).with_tx(tx_id),
            // An unverifiable payment has no owner.
            Err(_) => sent_by_wallet(),
        }
    }

    pub(crate) async fn session(&self, id: PaymentId) -> Result<Arc<Payment>, X402Error> {
        match self.payments.any(id).await {
            Err(EngineError::PaymentNotFound) => {
                Err(Refused::new(Reason::SessionNotFound, "there is no such session").into())
            }
            found => Ok(found?),
        }
    }

    pub(crate) async fn check_session(
        &self,
        payment: &Payment,
        payload: &PaymentPayload,
    ) -> Result<Checked, X402Error> {
        let merchant = self.access.merchant(payment.merchant).await?;
        self.check_open(payment, &merchant)?;
        let required = Requirements {
            amount: payment.amount,
            pay_to: payment.pay_to,
            resource: String::new(),
            valid_before: None,
        };
        required.check_accepted(payload.accepted.as_ref())?;
        let expected = Expected::of_session(payment);
        let checked = self.check_payment(&expected, payload).await?;
        self.check_not_on_ledger(payload, &checked).await?;
        Ok(checked)
    }

    fn check_open(&self, payment: &Payment, merchant: &Merchant) -> Result<(), Refused> {
        if payment.state != State::Pending {
            return Err(Refused::new(Reason::SessionNotPending, format_args!("the session is {}", payment.state)));
        }
        if payment.is_expired(self.access.now()) && !mutant!("expired-session-is-verified") {
            return Err(Refused::new(Reason::SessionExpired, "the session has expired"));
        }
        if payment.pending_cancellation().is_some() {
            return Err(Refused::new(Reason::SessionCancelling, "the session is being cancelled"));
        }
        if !merchant.is_active {
            return Err(Refused::new(Reason::MerchantInactive, "the merchant is inactive"));
        }
        if !merchant.x402_enabled {
            return Err(Refused::new(Reason::X402Disabled, "the merchant does not accept x402"));
        }
        Ok(())
    }

    fn rejected(&self, rejection: &Rejection, payment: &Payment) -> Refused {
        match rejection {
            Rejection::InFlight { .. } => {
                Refused::new(Reason::DuplicateSettlement, "another transaction is paying this session")
            }
            Rejection::Detected { .. } => {
                Refused::new(Reason::DuplicateSettlement, "the session is already being paid")
            }
            Rejection::Expired { .. } => Refused::new(Reason::SessionExpired, "the session has expired"),
            Rejection::Cancelling { .. } => Refused::new(Reason::SessionCancelling, "the session is being cancelled"),
            _ => Refused::new(Reason::SessionNotPending, format_args!("the session is {}", payment.state)),
        }
    }

    /// Waits for the outcome of a claim whose payer submits it again; the payer is verified in any case.
    async fn follow_session(
        &self,
        id: PaymentId,
        claimed: &ClaimRecord,
        payload: &PaymentPayload,
        is_replay: bool,
    ) -> Result<Settled, X402Error> {
        if is_replay {
            // Another engine may have claimed it and stopped: this one broadcasts the same bytes.
            self.payments.refresh(id)?;
        }
        let settled = self.await_session(id, claimed).await.map_err(|error| match error {
            X402Error::Refused(refused) if refused.payer.is_none() => match sender(payload) {
                Some(payer) => refused.by(&payer).into(),
                None => refused.into(),
            },
            other => other,
        })?;
        Ok(Settled { is_replay: is_replay && !mutant!("replay-not-marked"), ..settled })
    }

    /// Waits up to the timeout for the outcome of the claimed transaction.
    async fn await_session(&self, id: PaymentId, claimed: &ClaimRecord) -> Result<Settled, X402Error> {
        let left = (claimed.at + MAX_WAIT_FOR_OUTCOME).since(self.access.now()).max(MIN_WAIT);
        let mut watch = self.payments.watch(id).await?;
        let decided = tokio::time::timeout(left, async {
            while let Some(payment) = watch.next().await {
                // A session that left `pending`, or released the claim, is decided; `processing` is a result, too.
                let is_decided = payment.state != State::Pending || !holds(&payment, claimed.tx_id);
                if is_decided && !mutant!("agents-wait-the-full-hold") {
                    return;
                }
            }
        });
        tokio::select! {
            biased;
            // The engine shuts down: nothing can be decided any more, and waiting would delay the restart.
            _ = self.access.context.fatal.raised() => return Err(EngineError::StoreFailed.into()),
            _ = decided => {}
        }
        // The stored payment decides, also after the timeout: another engine may have settled it.
        let payment = self.payments.any(id).await?;
        self.outcome(&payment, claimed.tx_id).await
    }

    async fn outcome(&self, payment: &Payment, tx_id: TxId) -> Result<Settled, X402Error> {
        let credit = payment.transfers.iter().find(|c| c.tx_id == tx_id && c.to == payment.pay_to);
        if payment.paid_by == Some(tx_id)
            && let Some(credit) = credit
        {
            let block_num = credit.block.map(|block| block.position.block_num);
            return Ok(Settled { tx_id, payer: credit.from, block_num, amount: credit.money, is_replay: false });
        }
        let payer = payment.claim.as_ref().filter(|claim| claim.tx_id == tx_id).map(|claim| claim.payer);
        let by = |refused: Refused| match &payer {
            Some(payer) => refused.by(payer),
            None => refused,
        };
        if payment.state == State::Completed {
            let message = "another transaction has paid this session; contact the merchant for a refund";
            return Err(by(Refused::new(Reason::DuplicateSettlement, message).with_tx(tx_id)).into());
        }
        if holds(payment, tx_id) {
            let message = "the transaction is in flight; repeat the request with the same payment";
            return Err(by(Refused::new(Reason::SettlementPending, message).with_tx(tx_id)).into());
        }
        let claimed =
            self.access.context.env.store.claim(tx_id).await.map_err(|error| self.access.read_failed(&error))?;
        Err(match claimed.map(|claimed| claimed.outcome) {
            Some(ClaimOutcome::Refused { reason, message }) => Refused::new(reason, message),
            _ => Refused::new(Reason::InvalidTransactionState, "the transaction expired without being included"),
        }
        .into())
    }
}

fn holds(payment: &Payment, tx_id: TxId) -> bool {
    payment.claim.as_ref().is_some_and(|claim| claim.tx_id == tx_id)
}

/// Returns the submitted transaction if the scanner found it before it was claimed.
fn wallet_transfer(payment: &Payment, payload: &PaymentPayload) -> Option<TxId> {
    let ids = candidate_ids(&payload.transaction);
    let credited = payment.transfers.iter().map(|credit| credit.tx_id);
    credited.chain(payment.paid_by).find(|tx_id| ids.contains(tx_id))
}

/// Returns the senders of the transfers of a claimed transaction, which were checked before the claim.
fn sender(payload: &PaymentPayload) -> Option<AccountName> {
    payload.transaction.operations.first()?.payment().map(|(from, ..)| from)
}
