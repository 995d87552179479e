//! Payments for other people's servers: verified, claimed, brought onto the chain, and told of once.

use engine::{
    idempotency::{IdempotencyKey, Made, Remembered, settlement_fingerprint},
    ids::MerchantId,
    money::usd_cents,
    mutant,
    x402::{Expected, MemoRule, PaymentPayload, Reason, Refused, Requirements, candidate_ids},
};
use storage::{Claimed, Facilitation, Fate, Purpose};
use tokio::sync::oneshot;

use super::{Checked, LEAST_WAIT, Settled, Target, X402Error, duplicate, is_this};
use crate::{
    Gateway, GatewayError,
    facilitator::{self, ClaimError},
    payment::SessionError,
    settlement::HOLD,
};

/// Under what a caller that is known may ask again for a settlement, and get the same answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retry {
    /// Whose key it is.
    pub merchant: MerchantId,
    /// The key of the request.
    pub key: IdempotencyKey,
}

/// How often a success for somebody else's server is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Telling {
    /// To one caller only: nobody knows who asks.
    Once,
    /// Again, to the caller that is known.
    Again,
}

impl Retry {
    fn digest(&self) -> [u8; 32] {
        self.key.digest("x402 settle")
    }
}

impl Gateway {
    pub(super) async fn settle_requirements(
        &self,
        requirements: &Requirements,
        payload: &PaymentPayload,
        retry: Option<&Retry>,
    ) -> Result<Settled, X402Error> {
        let target = Target::Requirements(requirements.clone());
        if let Some(retry) = retry
            && let Some(settled) = self.settled_under(retry, requirements, payload).await?
        {
            return self.await_facilitation(settled, Telling::Again).await;
        }
        if let Some(claimed) = self.claimed_before(payload).await? {
            // Told once already, or somebody else's: never twice a success for one transaction.
            return if is_this(&claimed, payload) && is_for(&claimed, requirements) {
                let telling = self.telling(retry, requirements, payload, &claimed).await?;
                self.await_facilitation(claimed, telling).await
            } else {
                Err(duplicate(&claimed, &target).into())
            };
        }
        let checked = match self.check_requirements(requirements, payload).await {
            Ok(checked) => checked,
            // The same request may have claimed and sent it while this one was looking.
            Err(refused) => match self.claimed_before(payload).await? {
                Some(claimed) if is_this(&claimed, payload) && is_for(&claimed, requirements) => {
                    let telling = self.telling(retry, requirements, payload, &claimed).await?;
                    return self.await_facilitation(claimed, telling).await;
                }
                _ => return Err(refused),
            },
        };
        let price = self.context().rate().map(|rate| rate.price);
        let worth_cents = usd_cents(requirements.amount, price).unwrap_or(0);
        let facilitation = Facilitation {
            payer: checked.presented.payer,
            pay_to: requirements.pay_to,
            amount: checked.presented.transfers.first().map_or(requirements.amount, |transfer| transfer.money),
            resource: requirements.resource.clone(),
            signed_json: payload.transaction.to_condenser_json(),
            expiration: payload.transaction.expiration,
            finality: self.context().settings.x402.finality_of(worth_cents),
        };
        let claimed = Claimed {
            tx_id: checked.authorized.tx_id,
            nonce: payload.nonce.clone(),
            purpose: Purpose::Facilitated(Box::new(facilitation)),
            fate: Fate::Open,
            at: self.now(),
        };
        let remembered = retry.map(|retry| Remembered {
            merchant: retry.merchant,
            key: retry.digest(),
            fingerprint: settlement_fingerprint(requirements),
            made: Made::Settlement(claimed.tx_id),
            at: claimed.at,
        });
        match facilitator::claim(self.context(), &claimed, remembered).await {
            Ok(()) => {
                let telling = if retry.is_some() { Telling::Again } else { Telling::Once };
                self.await_facilitation(claimed, telling).await
            }
            // The same request twice at once: one of them will be told.
            Err(ClaimError::Failed(SessionError::Claimed(other)))
                if other.tx_id == claimed.tx_id && is_for(&other, requirements) =>
            {
                let telling = self.telling(retry, requirements, payload, &other).await?;
                self.await_facilitation(*other, telling).await
            }
            Err(ClaimError::Failed(SessionError::Claimed(other))) => Err(duplicate(&other, &target).into()),
            Err(ClaimError::Failed(error)) => Err(GatewayError::from(error).into()),
            // Another request under the same key was first.
            Err(ClaimError::Remembered(earlier)) => {
                let earlier = self.settlement_of(&earlier, requirements, payload).await?;
                self.await_facilitation(earlier, Telling::Again).await
            }
        }
    }

    /// Looks up what was settled under a key; the key may not stand for other requirements, nor for another payment: who
    /// names payments may be the payer, and one payment must not pass for two.
    async fn settled_under(
        &self,
        retry: &Retry,
        requirements: &Requirements,
        payload: &PaymentPayload,
    ) -> Result<Option<Claimed>, X402Error> {
        let found = self.context().env.store.remembered(retry.merchant, retry.digest()).await;
        match found.map_err(|error| self.read_failed(&error))?.filter(|earlier| earlier.is_alive(self.now())) {
            Some(earlier) => self.settlement_of(&earlier, requirements, payload).await.map(Some),
            None => Ok(None),
        }
    }

    /// Says whether the caller is the one that the claim was made for, by its key.
    async fn telling(
        &self,
        retry: Option<&Retry>,
        requirements: &Requirements,
        payload: &PaymentPayload,
        claimed: &Claimed,
    ) -> Result<Telling, X402Error> {
        let Some(retry) = retry else { return Ok(Telling::Once) };
        Ok(match self.settled_under(retry, requirements, payload).await? {
            Some(earlier) if earlier.tx_id == claimed.tx_id => Telling::Again,
            _ => Telling::Once,
        })
    }

    async fn settlement_of(
        &self,
        earlier: &Remembered,
        requirements: &Requirements,
        payload: &PaymentPayload,
    ) -> Result<Claimed, X402Error> {
        let Made::Settlement(tx_id) = earlier.made else { return Err(GatewayError::KeyReused.into()) };
        let is_same_payment = candidate_ids(&payload.transaction).contains(&tx_id);
        if !is_same_payment || earlier.fingerprint != settlement_fingerprint(requirements) {
            return Err(GatewayError::KeyReused.into());
        }
        let claimed = self.context().env.store.claim(tx_id).await.map_err(|error| self.read_failed(&error))?;
        // Both were written at once, and a claim is never removed.
        Ok(claimed.ok_or(GatewayError::StoreFailed)?)
    }

    pub(super) async fn check_requirements(
        &self,
        requirements: &Requirements,
        payload: &PaymentPayload,
    ) -> Result<Checked, X402Error> {
        requirements.check_accepted(payload.accepted.as_ref())?;
        if requirements.valid_before.is_some_and(|until| self.now() > until) {
            return Err(Refused::new(Reason::PaymentExpired, "the requirements are no longer valid").into());
        }
        if self.context().settings.x402.only_registered && !self.context().watched.contains(&requirements.pay_to) {
            let message = "payTo is no account of a merchant here";
            return Err(Refused::new(Reason::InvalidPaymentRequirements, message).into());
        }
        let expected =
            Expected { pay_to: requirements.pay_to, net: requirements.amount, fee: None, memo: MemoRule::Requirements };
        let checked = self.check_payment(&expected, payload).await?;
        self.check_unseen(payload, &checked).await?;
        Ok(checked)
    }

    async fn await_facilitation(&self, claimed: Claimed, telling: Telling) -> Result<Settled, X402Error> {
        let Purpose::Facilitated(facilitation) = &claimed.purpose else {
            return Err(Refused::new(Reason::DuplicateSettlement, "the transaction pays a session").into());
        };
        let left = (claimed.at + HOLD).since(self.now()).max(LEAST_WAIT);
        let (reply, decided) = oneshot::channel();
        self.tell_facilitator(facilitator::Msg::Follow(Box::new(claimed.clone()), reply))?;
        tokio::select! {
            biased;
            _ = self.context().fatal.raised() => return Err(GatewayError::StoreFailed.into()),
            // Out of time, or the task died: what is stored tells.
            _ = tokio::time::timeout(left, decided) => {}
        }
        let (tx_id, payer) = (claimed.tx_id, &facilitation.payer);
        let refused = |reason, message: &str| Refused::new(reason, message).by(payer);
        let settled =
            |is_replay| Ok(Settled { tx_id, payer: *payer, block_num: None, amount: facilitation.amount, is_replay });
        let stored = self.context().env.store.claim(tx_id).await.map_err(|error| self.read_failed(&error))?;
        match stored.map_or(Fate::Open, |claimed| claimed.fate) {
            Fate::Open => {
                let message = "the transaction is on its way; ask again with the same payment";
                Err(refused(Reason::SettlementPending, message).with_tx(tx_id).into())
            }
            Fate::Settled { told: true } if telling == Telling::Again || mutant!("told-twice") => settled(true),
            Fate::Settled { told: true } => {
                Err(refused(Reason::DuplicateSettlement, "this payment was settled before").with_tx(tx_id).into())
            }
            Fate::Settled { told: false } => match facilitator::tell(self.context(), tx_id).await {
                Ok(()) => settled(false),
                Err(SessionError::Contended) if telling == Telling::Again => settled(true),
                // Another caller was told a moment ago.
                Err(SessionError::Contended) => {
                    Err(refused(Reason::DuplicateSettlement, "this payment was settled before").with_tx(tx_id).into())
                }
                Err(error) => Err(GatewayError::from(error).into()),
            },
            Fate::Refused { reason, message } => Err(refused(reason, &message).into()),
            Fate::Buried => {
                Err(refused(Reason::InvalidTransactionState, "the transaction did not happen before it expired").into())
            }
        }
    }
}

/// Says whether a claim was made for these requirements.
fn is_for(claimed: &Claimed, requirements: &Requirements) -> bool {
    matches!(&claimed.purpose, Purpose::Facilitated(for_whom) if is_same(for_whom, requirements))
}

pub(super) fn is_same(facilitation: &Facilitation, requirements: &Requirements) -> bool {
    facilitation.pay_to == requirements.pay_to && facilitation.resource == requirements.resource
}
