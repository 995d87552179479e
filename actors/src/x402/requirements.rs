//! Payments for other servers: verified, claimed, broadcast, and reported as a success once.

use engine::{
    idempotency::{IdempotencyRecord, Resource, settlement_fingerprint},
    ids::MerchantId,
    ledger::TxId,
    money::usd_cents,
    mutant,
    time::Timestamp,
    x402::{
        ClaimOutcome, ClaimRecord, Expected, Facilitation, MemoRule, PaymentPayload, Purpose, Reason, Refused,
        Requirements,
    },
};
use tokio::sync::oneshot;

use crate::{
    chain::submission::MAX_WAIT_FOR_OUTCOME,
    error::EngineError,
    payments::messages::SessionError,
    x402::{
        checks::{Checked, MIN_WAIT, PriorClaim, assigned, duplicate, is_for},
        claims::{self, ClaimError, FacilitatorMsg},
        handle::{Caller, Settled, Target, X402, X402Error},
    },
};

/// Whether a successful settlement for another server may be reported to a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reporting {
    /// Not to this caller: the payment belongs to another request.
    Never,
    /// Only if it was not reported before. The idempotency key of the request, if it has one, is stored with the report, so that
    /// the caller may repeat it.
    Once(Option<IdempotencyRecord>),
    /// Any number of times: the caller repeats the request that the payment belongs to.
    Repeatable,
}

impl Caller {
    /// Returns the idempotency key of the request; `None` without an authenticated seller.
    fn request_key(&self) -> Option<(MerchantId, [u8; 32])> {
        self.seller.zip(self.key.as_ref().map(|key| key.digest("x402 settle")))
    }

    /// Returns the record of the request's idempotency key, if it has one.
    fn remembered(&self, requirements: &Requirements, tx_id: TxId, at: Timestamp) -> Option<IdempotencyRecord> {
        let (merchant, key) = self.request_key()?;
        let (fingerprint, resource) = (settlement_fingerprint(requirements), Resource::Settlement(tx_id));
        Some(IdempotencyRecord { merchant, key, fingerprint, resource, at })
    }
}

impl X402 {
    pub(crate) async fn settle_requirements(
        &self,
        requirements: &Requirements,
        payload: &PaymentPayload,
        caller: &Caller,
    ) -> Result<Settled, X402Error> {
        let target = Target::Requirements(requirements.clone());
        if let Some(settled) = self.settled_under(caller, requirements, payload).await? {
            let once = mutant!("success-under-a-key-reported-once");
            let reporting = if once { Reporting::Once(None) } else { Reporting::Repeatable };
            return self.await_facilitation(settled, reporting, false).await;
        }
        match self.find_claim(requirements.pay_to, payload).await? {
            PriorClaim::None => {}
            prior => return self.settled_earlier(prior, requirements, payload, caller).await,
        }
        let checked = match self.check_requirements(requirements, payload).await {
            Ok(checked) => checked,
            // A concurrent request may have claimed and broadcast it.
            Err(refused) => match self.find_claim(requirements.pay_to, payload).await? {
                prior @ PriorClaim::SamePayment(_) => {
                    return self.settled_earlier(prior, requirements, payload, caller).await;
                }
                _ => return Err(refused),
            },
        };
        let payer = checked.presented.payer;
        let claimed = self.claim_record(requirements, payload, caller, &checked);
        let remembered = caller.remembered(requirements, claimed.tx_id, claimed.at);
        match self.claim(&claimed, remembered).await {
            Ok(()) => {
                let reporting = if remembered.is_some() { Reporting::Repeatable } else { Reporting::Once(None) };
                self.await_facilitation(claimed, reporting, true).await
            }
            // Two identical concurrent requests: one of them reports the success.
            Err(ClaimError::Failed(SessionError::Claimed(other))) => match self.match_claim(*other, payload) {
                prior @ PriorClaim::SamePayment(_) => self.settled_earlier(prior, requirements, payload, caller).await,
                prior => Err(duplicate(&prior, &target).by(&payer)),
            },
            Err(ClaimError::Failed(SessionError::Assigned(_))) => {
                Err(assigned().by(&payer).with_tx(claimed.tx_id).into())
            }
            Err(ClaimError::Failed(error)) => Err(EngineError::from(error).into()),
            // Another request with the same key was faster.
            Err(ClaimError::Remembered(earlier)) => {
                let earlier = self.settlement_of(&earlier, requirements, payload).await?;
                self.await_facilitation(earlier, Reporting::Repeatable, false).await
            }
        }
    }

    /// Stores a claim and has its transaction followed, also if the caller disconnects meanwhile, which drops its
    /// request: a claim without a follower would stay open.
    async fn claim(&self, claimed: &ClaimRecord, remembered: Option<IdempotencyRecord>) -> Result<(), ClaimError> {
        if mutant!("claim-dropped-with-its-request") {
            return claims::claim(&self.access.context, claimed, remembered).await;
        }
        let (x402, claimed) = (self.clone(), Box::new(claimed.clone()));
        let task = tokio::spawn(async move {
            claims::claim(&x402.access.context, &claimed, remembered).await?;
            let (decided, _) = oneshot::channel();
            // Without a facilitator the process ends.
            let _ = x402.send(FacilitatorMsg::Follow { claimed, is_new: true, decided });
            Ok(())
        });
        task.await.unwrap_or_else(|error| match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime shuts down.
            Err(_) => Err(ClaimError::Failed(SessionError::Unknown)),
        })
    }

    /// Returns the record that claims a checked payment.
    fn claim_record(
        &self,
        requirements: &Requirements,
        payload: &PaymentPayload,
        caller: &Caller,
        checked: &Checked,
    ) -> ClaimRecord {
        let rate = self.ledger.quoting_rate();
        let (hive, hbd) = (rate.map(|rate| rate.price), rate.and_then(|rate| rate.hbd));
        let worth_cents = usd_cents(requirements.amount, hive, hbd).unwrap_or(0);
        let facilitation = Facilitation {
            payer: checked.presented.payer,
            seller: caller.seller,
            request_key: caller.request_key().map(|(_, key)| key),
            amount: checked.presented.transfers.first().map_or(requirements.amount, |transfer| transfer.money),
            resource: requirements.resource.clone(),
            signed_json: payload.transaction.to_condenser_json(),
            expiration: payload.transaction.expiration,
            finality: self.access.context.settings.x402.finality_of(worth_cents),
        };
        ClaimRecord {
            tx_id: checked.authorized.tx_id,
            pay_to: requirements.pay_to,
            nonce: payload.nonce.clone(),
            identifier: payload.identifier.clone(),
            proof: self.proof(payload, checked),
            purpose: Purpose::Facilitated(Box::new(facilitation)),
            outcome: ClaimOutcome::Open,
            at: self.access.now(),
        }
    }

    /// Returns the result for a payment with an earlier claim.
    async fn settled_earlier(
        &self,
        prior: PriorClaim,
        requirements: &Requirements,
        payload: &PaymentPayload,
        caller: &Caller,
    ) -> Result<Settled, X402Error> {
        match prior {
            PriorClaim::SamePayment(claimed) if is_for(&claimed, requirements) => {
                let reporting = self.reporting(caller, requirements, payload, &claimed).await?;
                self.await_facilitation(*claimed, reporting, false).await
            }
            prior => Err(duplicate(&prior, &Target::Requirements(requirements.clone()))),
        }
    }

    /// Returns the claim settled earlier with the caller's idempotency key.
    ///
    /// # Errors
    /// [`EngineError::KeyReused`] if the key belongs to other requirements or another payment.
    async fn settled_under(
        &self,
        caller: &Caller,
        requirements: &Requirements,
        payload: &PaymentPayload,
    ) -> Result<Option<ClaimRecord>, X402Error> {
        let Some((merchant, key)) = caller.request_key() else { return Ok(None) };
        let found = self.access.context.env.store.remembered(merchant, key).await;
        match found
            .map_err(|error| self.access.read_failed(&error))?
            .filter(|earlier| earlier.is_valid(self.access.now()))
        {
            Some(earlier) => self.settlement_of(&earlier, requirements, payload).await.map(Some),
            None => Ok(None),
        }
    }

    /// Returns whether the success may be reported to the caller. A settlement belongs to the seller that requested it, and
    /// with an idempotency key to that one request, so that a payer cannot present one payment to two requests.
    async fn reporting(
        &self,
        caller: &Caller,
        requirements: &Requirements,
        payload: &PaymentPayload,
        claimed: &ClaimRecord,
    ) -> Result<Reporting, X402Error> {
        let Purpose::Facilitated(facilitation) = &claimed.purpose else { return Ok(Reporting::Never) };
        let key = caller.request_key().map(|(_, key)| key);
        let is_sellers = facilitation.seller.is_none()
            || facilitation.seller == caller.seller
            || mutant!("settlement-not-bound-to-seller");
        let is_requests = facilitation.request_key.is_none() || facilitation.request_key == key;
        if !is_sellers || !is_requests || mutant!("sellers-refused-their-success") {
            return Ok(Reporting::Never);
        }
        Ok(match self.settled_under(caller, requirements, payload).await? {
            Some(earlier) if earlier.tx_id == claimed.tx_id => Reporting::Repeatable,
            None if mutant!("repeat-without-idempotency-key") => Reporting::Repeatable,
            // The claim was made without a key.
            None if mutant!("key-not-stored-with-report") => Reporting::Once(None),
            None => Reporting::Once(caller.remembered(requirements, claimed.tx_id, self.access.now())),
            Some(_) => Reporting::Once(None),
        })
    }

    async fn settlement_of(
        &self,
        earlier: &IdempotencyRecord,
        requirements: &Requirements,
        payload: &PaymentPayload,
    ) -> Result<ClaimRecord, X402Error> {
        let Resource::Settlement(tx_id) = earlier.resource else { return Err(EngineError::KeyReused.into()) };
        if earlier.fingerprint != settlement_fingerprint(requirements) {
            return Err(EngineError::KeyReused.into());
        }
        let claimed =
            self.access.context.env.store.claim(tx_id).await.map_err(|error| self.access.read_failed(&error))?;
        // A settled claim outlives the key of its request.
        match self.match_claim(claimed.ok_or(EngineError::StoreFailed)?, payload) {
            PriorClaim::SamePayment(claimed) => Ok(*claimed),
            _ => Err(EngineError::KeyReused.into()),
        }
    }

    pub(crate) async fn check_requirements(
        &self,
        requirements: &Requirements,
        payload: &PaymentPayload,
    ) -> Result<Checked, X402Error> {
        requirements.check_accepted(payload.accepted.as_ref())?;
        if requirements.valid_before.is_some_and(|until| self.access.now() > until) {
            return Err(Refused::new(Reason::PaymentExpired, "the requirements are no longer valid").into());
        }
        if self.access.context.settings.x402.only_registered
            && !mutant!("strangers-are-served")
            && !self.ledger.watched.contains(&requirements.pay_to)
        {
            let message = "payTo is not an account of a registered merchant";
            return Err(Refused::new(Reason::InvalidPaymentRequirements, message).into());
        }
        let expected =
            Expected { pay_to: requirements.pay_to, net: requirements.amount, fee: None, memo: MemoRule::Requirements };
        let checked = self.check_payment(&expected, payload).await?;
        self.check_not_on_ledger(payload, &checked).await?;
        Ok(checked)
    }

    /// Returns whether a caller may receive a success that was reported to a concurrent one: it sent the same request.
    async fn was_reported_under(&self, reporting: Reporting) -> Result<bool, X402Error> {
        let own = match reporting {
            Reporting::Repeatable => return Ok(true),
            Reporting::Never | Reporting::Once(None) => return Ok(false),
            Reporting::Once(Some(own)) => own,
        };
        let found = self.access.context.env.store.remembered(own.merchant, own.key).await;
        let found = found.map_err(|error| self.access.read_failed(&error))?;
        Ok(found.is_some_and(|found| found.resource == own.resource && found.fingerprint == own.fingerprint))
    }

    /// Waits for the outcome of a claim, which this request has just made if it `is_new`.
    async fn await_facilitation(
        &self,
        claimed: ClaimRecord,
        reporting: Reporting,
        is_new: bool,
    ) -> Result<Settled, X402Error> {
        let Purpose::Facilitated(facilitation) = &claimed.purpose else {
            return Err(Refused::new(Reason::DuplicateSettlement, "the transaction pays a session").into());
        };
        let left = (claimed.at + MAX_WAIT_FOR_OUTCOME).since(self.access.now()).max(MIN_WAIT);
        let (tx_id, payer) = (claimed.tx_id, &facilitation.payer);
        let refused = |reason, message: &str| Refused::new(reason, message).by(payer);
        let already_settled = || refused(Reason::DuplicateSettlement, "this payment was settled before").with_tx(tx_id);
        if reporting == Reporting::Never {
            return Err(already_settled().into());
        }
        let (reply, decided) = oneshot::channel();
        self.send(FacilitatorMsg::Follow { claimed: Box::new(claimed.clone()), is_new, decided: reply })?;
        tokio::select! {
            biased;
            _ = self.access.context.fatal.raised() => return Err(EngineError::StoreFailed.into()),
            // On timeout, or if the task panicked, the stored outcome decides.
            _ = tokio::time::timeout(left, decided) => {}
        }
        let settled = |block_num, is_replay| {
            Ok(Settled { tx_id, payer: *payer, block_num, amount: facilitation.amount, is_replay })
        };
        let stored =
            self.access.context.env.store.claim(tx_id).await.map_err(|error| self.access.read_failed(&error))?;
        match stored.map_or(ClaimOutcome::Open, |claimed| claimed.outcome) {
            ClaimOutcome::Open | ClaimOutcome::Shared => {
                let message = "the transaction is in flight; repeat the request with the same payment";
                Err(refused(Reason::SettlementPending, message).with_tx(tx_id).into())
            }
            ClaimOutcome::Settled { is_reported: true, block_num }
                if reporting == Reporting::Repeatable || mutant!("settlement-succeeds-twice") =>
            {
                settled(block_num, true)
            }
            ClaimOutcome::Settled { is_reported: true, block_num } => {
                if self.was_reported_under(reporting).await? {
                    settled(block_num, true)
                } else {
                    Err(already_settled().into())
                }
            }
            ClaimOutcome::Settled { is_reported: false, block_num } => {
                let remembered = if let Reporting::Once(remembered) = reporting { remembered } else { None };
                match claims::mark_reported(&self.access.context, tx_id, block_num, remembered).await {
                    Ok(()) => settled(block_num, false),
                    // The success was reported to a concurrent caller.
                    Err(SessionError::Contended) if self.was_reported_under(reporting).await? => {
                        settled(block_num, true)
                    }
                    Err(SessionError::Contended) => Err(already_settled().into()),
                    Err(error) => Err(EngineError::from(error).into()),
                }
            }
            ClaimOutcome::Refused { reason, message } => Err(refused(reason, &message).into()),
            ClaimOutcome::Expired => {
                Err(refused(Reason::InvalidTransactionState, "the transaction expired without being included").into())
            }
        }
    }
}
