//! Checks of a presented payment: earlier claims, authorization, presence on the ledger.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use engine::{
    account::AccountName,
    hive::Authorized,
    mutant,
    x402::{
        CheckedPayment, ClaimRecord, Expected, PayerProof, PaymentPayload, Purpose, Reason, Refused, Requirements,
        authorize, candidate_ids, check_balance,
    },
};

use crate::{
    environment::{Account, TxStatus},
    error::EngineError,
    x402::handle::{Target, X402, X402Error},
};

/// Rounds of fetching delegates: those of the account, then those of the delegates.
const MAX_ROUNDS: usize = 4;
/// Minimum time that a repeated settle waits before it returns `settlement_pending`.
pub(crate) const MIN_WAIT: Duration = Duration::from_secs(3);

/// A payment that passed every check.
pub(crate) struct Checked {
    pub(crate) presented: CheckedPayment,
    pub(crate) authorized: Authorized,
}

impl X402 {
    /// Looks up an earlier claim by either transaction id, by identifier or by nonce. Until the signatures are checked, a
    /// claim can only lead to a refusal.
    pub(crate) async fn find_claim(
        &self,
        pay_to: AccountName,
        payload: &PaymentPayload,
    ) -> Result<PriorClaim, X402Error> {
        let tx_ids = candidate_ids(&payload.transaction).into_iter().collect();
        let (identifier, nonce) = (payload.identifier.clone(), payload.nonce.clone());
        let found = self.access.context.env.store.overlapping_claim(pay_to, tx_ids, identifier, nonce).await;
        let found = found.map_err(|error| self.access.read_failed(&error))?;
        // Only a claim of the nonce alone is overlooked by this defect.
        let is_by_nonce = |claimed: &ClaimRecord| {
            let is_this = candidate_ids(&payload.transaction).contains(&claimed.tx_id);
            !is_this && (payload.identifier.is_none() || payload.identifier != claimed.identifier)
        };
        let found = found.filter(|claimed| !(mutant!("nonce-claimed-twice") && is_by_nonce(claimed)));
        Ok(found.map_or(PriorClaim::None, |claimed| self.match_claim(claimed, payload)))
    }

    /// Compares a presented payment with an earlier claim.
    pub(crate) fn match_claim(&self, claimed: ClaimRecord, payload: &PaymentPayload) -> PriorClaim {
        let is_shown = claimed.proof.matches(&claimed.nonce, payload, self.access.context.settings.chain_id);
        if is_shown || mutant!("payer-proof-not-checked") {
            return PriorClaim::SamePayment(Box::new(claimed));
        }
        let is_this = candidate_ids(&payload.transaction).contains(&claimed.tx_id);
        if !is_this && payload.identifier.is_some() && payload.identifier == claimed.identifier {
            return PriorClaim::SameIdentifier;
        }
        PriorClaim::Unproven
    }

    pub(crate) async fn refuse_claimed(
        &self,
        target: &Target,
        pay_to: AccountName,
        payload: &PaymentPayload,
    ) -> Result<(), X402Error> {
        match self.find_claim(pay_to, payload).await? {
            PriorClaim::None => Ok(()),
            prior => Err(duplicate(&prior, target)),
        }
    }

    pub(crate) fn proof(&self, payload: &PaymentPayload, checked: &Checked) -> PayerProof {
        PayerProof::of(&payload.transaction, self.access.context.settings.chain_id, &checked.authorized)
    }

    /// Checks a payment locally, then the payer's keys and balance on the ledger.
    pub(crate) async fn check_payment(
        &self,
        expected: &Expected,
        payload: &PaymentPayload,
    ) -> Result<Checked, X402Error> {
        let context = &self.access.context;
        let max_expiration = context.settings.x402.max_expiration;
        let presented =
            expected.check(&payload.transaction, payload.version, &payload.nonce, self.access.now(), max_expiration)?;
        let (authorized, payer_account) = self.authorized(&presented.payer, payload).await?;
        check_balance(&presented, &payer_account.balances)?;
        Ok(Checked { presented, authorized })
    }

    /// Checks the signatures against the payer's authority on the ledger.
    pub(crate) async fn authorized(
        &self,
        payer: &AccountName,
        payload: &PaymentPayload,
    ) -> Result<(Authorized, Arc<Account>), X402Error> {
        let context = &self.access.context;
        let mut wanted = BTreeSet::from([*payer]);
        let mut accounts = BTreeMap::<AccountName, Arc<Account>>::new();
        for _ in 0..MAX_ROUNDS {
            let fetched = self.ledger.accounts(&wanted).await;
            let fetched = fetched.map_err(|error| {
                tracing::debug!(%error, "cannot read the payer's authority: {error}");
                EngineError::LedgerUnavailable
            })?;
            // The required authority is unknown yet.
            let has_new_accounts = !fetched.is_empty();
            accounts.extend(fetched);
            let Some(payer_account) = accounts.get(payer) else {
                let message = format!("the ledger has no account {payer}");
                return Err(Refused::new(Reason::AccountNotFound, message).into());
            };
            let authorities = accounts.iter().map(|(name, account)| (*name, account.active.clone())).collect();
            match authorize(&payload.transaction, payer, context.settings.chain_id, &authorities) {
                Ok(authorized) => return Ok((authorized, Arc::clone(payer_account))),
                Err(Ok(denied)) if has_new_accounts => wanted = denied.unknown,
                Err(Ok(denied)) => return Err(Refused::new(Reason::Authority, denied).into()),
                Err(Err(refused)) => return Err(refused.into()),
            }
        }
        Err(Refused::new(Reason::Authority, "the authority is delegated too deeply").into())
    }

    /// Refuses a transaction that is already on the ledger: it is public there, so its presenter need not be the payer.
    pub(crate) async fn check_not_on_ledger(
        &self,
        payload: &PaymentPayload,
        checked: &Checked,
    ) -> Result<(), X402Error> {
        let tx_id = checked.authorized.tx_id;
        let status = self.ledger.nodes.find_transaction(tx_id, payload.transaction.expiration).await;
        match status.map_err(|_| EngineError::LedgerUnavailable)? {
            TxStatus::Unknown | TxStatus::ExpiredReversible | TxStatus::ExpiredIrreversible => Ok(()),
            // An account may need no signature, so the presenter need not be the payer.
            _ if payload.transaction.signatures.is_empty() => Err(sent_by_wallet().into()),
            _ => Err(sent_by_wallet().by(&checked.presented.payer).with_tx(tx_id).into()),
        }
    }
}

pub(crate) fn sent_by_wallet() -> Refused {
    let message = "the transaction was sent without x402: it is credited as a wallet's, and has no receipt";
    Refused::new(Reason::DuplicateSettlement, message)
}

pub(crate) fn assigned() -> Refused {
    Refused::new(Reason::DuplicateSettlement, "the transaction was sent without x402, and its money pays a session")
}

/// An earlier claim that overlaps with a presented payment.
pub(crate) enum PriorClaim {
    /// No claim exists.
    None,
    /// The same payment was claimed: same nonce, same bytes, signed by the same keys.
    SamePayment(Box<ClaimRecord>),
    /// Another payment was claimed with the same payment identifier.
    SameIdentifier,
    /// The transaction or the nonce is claimed, and the presenter has not proven to be the payer.
    Unproven,
}

/// Returns the refusal of a payment of which something is claimed. Names the transaction only to its payer, and only for
/// what it was claimed for.
pub(crate) fn duplicate(prior: &PriorClaim, target: &Target) -> X402Error {
    let refused = Refused::new(Reason::DuplicateSettlement, "the transaction or its nonce was used before");
    match prior {
        PriorClaim::SameIdentifier => EngineError::IdentifierReused.into(),
        PriorClaim::SamePayment(claimed) if is_target(claimed, target) => refused.with_tx(claimed.tx_id).into(),
        _ => refused.into(),
    }
}

pub(crate) fn is_target(claimed: &ClaimRecord, target: &Target) -> bool {
    match target {
        Target::Session(id) => claimed.purpose == Purpose::Session(*id),
        Target::Requirements(requirements) => is_for(claimed, requirements),
    }
}

/// Returns whether a claim was made for these requirements.
pub(crate) fn is_for(claimed: &ClaimRecord, requirements: &Requirements) -> bool {
    match &claimed.purpose {
        Purpose::Facilitated(facilitation) => {
            claimed.pay_to == requirements.pay_to
                && (facilitation.resource == requirements.resource || mutant!("settlement-not-bound-to-resource"))
        }
        Purpose::Session(_) => false,
    }
}
