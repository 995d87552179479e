//! Proof of a merchant's ledger account: challenges, signatures and transfers that complete them, verification by the
//! operator, and the rights that require a proof.

use std::collections::{BTreeMap, BTreeSet};

use engine::{
    account::AccountName,
    hive::Signature,
    ids::MerchantId,
    ledger::Transfer,
    merchant::Merchant,
    mutant,
    ownership::{
        AuthorityDigest, Challenge, Nonce, Proof, Rejection, SignatureCheck, VerificationMethod, VerificationStatus,
        merchant_in_proof_memo,
    },
};
use tokio::sync::oneshot;

use crate::{
    error::EngineError,
    merchants::{
        handle::Merchants,
        messages::{Change, MerchantError, MerchantMsg},
    },
};

/// Rounds of fetching delegates: those of the account, then those of the delegates.
const MAX_ROUNDS: usize = 4;

/// An issued challenge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issued {
    /// The challenge.
    pub challenge: Challenge,
    /// The text to sign.
    pub text: String,
    /// The SHA-256 of the text, which is signed.
    pub digest: [u8; 32],
    /// The memo of a transfer to oneself that completes it, too.
    pub memo: String,
}

/// The result of submitting signatures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// The merchant after the submission.
    pub merchant: Merchant,
    /// Whether the challenge is completed; otherwise more signatures are required.
    pub is_complete: bool,
    /// The number of keys that have signed.
    pub keys: usize,
}

impl Merchants {
    /// Issues a challenge for an account of a merchant; by default for the account whose signature is missing. A valid
    /// challenge is issued again.
    ///
    /// # Errors
    /// [`EngineError::Ownership`]; [`EngineError::MerchantNotFound`]; [`EngineError::LedgerUnavailable`] while too few
    /// nodes report the account's authority; store errors.
    pub async fn issue_challenge(
        &self,
        id: MerchantId,
        account: Option<AccountName>,
        cancels: bool,
    ) -> Result<Issued, EngineError> {
        let nonce = Nonce(self.access.context.env.entropy.bytes());
        let (account, _) =
            self.access.merchant(id).await?.challenge_target(account, cancels).map_err(EngineError::Ownership)?;
        let authority = self.active_authority(account).await?;
        let merchant = self.change(id, Change::Challenge { account, cancels, authority, nonce }).await?;
        let question = merchant.challenge_target(Some(account), cancels).map_err(EngineError::Ownership)?;
        let challenges = merchant.ownership.challenges.into_iter();
        let newest = challenges.rev().find(|one| (one.account, one.action) == question);
        let challenge = newest.ok_or(EngineError::Contended)?;
        let server = &self.access.context.settings.server;
        Ok(Issued {
            text: challenge.text(server, id),
            digest: challenge.digest(server, id),
            memo: challenge.memo(server, id),
            challenge,
        })
    }

    /// Submits signatures for a challenge; several calls add up until they satisfy the account's active authority,
    /// confirmed by a majority of nodes.
    ///
    /// # Errors
    /// [`EngineError::Ownership`]; [`EngineError::LedgerUnavailable`] while too few nodes respond; store errors.
    pub async fn answer_challenge(
        &self,
        id: MerchantId,
        nonce: Nonce,
        signatures: &[Signature],
    ) -> Result<Answered, EngineError> {
        let merchant = self.access.merchant(id).await?;
        let challenge = merchant.challenge(nonce).map_err(EngineError::Ownership)?;
        let server = &self.access.context.settings.server;
        let mut wanted = BTreeSet::from([challenge.account]);
        let mut authorities = BTreeMap::new();
        for _ in 0..MAX_ROUNDS {
            let known = authorities.len();
            authorities.extend(self.ledger.authorities(&wanted).await.map_err(|_| EngineError::LedgerUnavailable)?);
            let Some(active) = authorities.get(&challenge.account) else {
                return Err(EngineError::UnknownAccount(challenge.account));
            };
            let checked = challenge.check(server, id, signatures, &authorities, self.access.now());
            match checked.map_err(EngineError::Ownership)? {
                SignatureCheck::Complete => {
                    let proof =
                        Proof::new(VerificationMethod::Signature, Some(AuthorityDigest::of(active)), self.access.now());
                    let merchant = self.change(id, Change::Proven { nonce, proof }).await?;
                    tracing::info!(merchant.id = %id, account = %challenge.account, "merchant {id} proved ownership of @{} by signature", challenge.account);
                    return Ok(Answered { merchant, is_complete: true, keys: 0 });
                }
                SignatureCheck::Incomplete(keys) => {
                    let merchant = self.change(id, Change::SignedKeys { nonce, keys }).await?;
                    let keys = merchant.challenge(nonce).map_or(0, |challenge| challenge.keys.len());
                    return Ok(Answered { merchant, is_complete: false, keys });
                }
                SignatureCheck::Unknown(_) if known == authorities.len() => break,
                SignatureCheck::Unknown(unknown) => wanted = unknown,
            }
        }
        Err(EngineError::Ownership(Rejection::Signature { index: 0 }))
    }

    /// Marks a merchant's account, or its pending one, as verified by the operator.
    ///
    /// # Errors
    /// As [`Merchants::answer_challenge`].
    pub async fn vouch_for(&self, id: MerchantId, account: Option<AccountName>) -> Result<Merchant, EngineError> {
        let merchant = self.access.merchant(id).await?;
        let account = account.unwrap_or(merchant.hive_account);
        let proof =
            Proof::new(VerificationMethod::Operator, Some(self.active_authority(account).await?), self.access.now());
        let merchant = self.change(id, Change::Vouched { account, proof }).await?;
        tracing::info!(merchant.id = %id, %account, "operator verified @{account} of merchant {id}");
        Ok(merchant)
    }

    /// Returns the digest of an account's active authority, confirmed by a majority of nodes.
    async fn active_authority(&self, account: AccountName) -> Result<AuthorityDigest, EngineError> {
        let found = self.ledger.authorities(&BTreeSet::from([account])).await;
        let found = found.map_err(|_| EngineError::LedgerUnavailable)?;
        found.get(&account).map(AuthorityDigest::of).ok_or(EngineError::UnknownAccount(account))
    }

    /// Cancels a merchant's pending change of account.
    ///
    /// # Errors
    /// [`EngineError::Ownership`] if none is pending; [`EngineError::MerchantNotFound`]; store errors.
    pub async fn cancel_account_change(&self, id: MerchantId) -> Result<Merchant, EngineError> {
        self.change(id, Change::CancelPending).await
    }

    /// Returns whether a merchant may list the transfers to an account.
    pub(crate) fn may_read(&self, merchant: &Merchant, account: &AccountName) -> Result<(), EngineError> {
        match merchant.proof_for(account) {
            Some(_) => Ok(()),
            None if mutant!("unmatched-shown-without-proof") => Ok(()),
            None => Err(EngineError::NotProven { account: *account, standing: VerificationStatus::Unverified }),
        }
    }

    /// Returns whether a merchant may handle transfers to an account: it has proven ownership, and the account's active
    /// authority is still the one that signed the proof.
    pub(crate) async fn may_decide(&self, merchant: &Merchant, account: &AccountName) -> Result<(), EngineError> {
        self.may_read(merchant, account)?;
        if mutant!("rights-without-proof") || mutant!("stale-proof-decides") {
            return Ok(());
        }
        let digest = self.active_authority(*account).await?;
        let change = Change::Authority { account: *account, digest };
        let is_known =
            |merchant: &Merchant| merchant.proof_for(account).is_some_and(|proof| proof.stale_since.is_none());
        let merchant = match merchant.with_authority(account, digest, self.access.now()) {
            None => merchant.clone(),
            Some(_) => self.change(merchant.id, change).await?,
        };
        if is_known(&merchant) {
            return Ok(());
        }
        Err(EngineError::NotProven { account: *account, standing: VerificationStatus::Stale })
    }
}

/// Returns whether an irreversible transfer completes a challenge, or looks like one that does, and records the proof.
/// Such a transfer is never a payment, of any merchant.
///
/// # Errors
/// [`MerchantError`] if the proof could not be stored; the transfer must be read again.
pub(crate) async fn record_proof_transfer(merchants: &Merchants, transfer: &Transfer) -> Result<bool, MerchantError> {
    let Some(id) = merchant_in_proof_memo(transfer) else { return Ok(false) };
    let (account, context) = (transfer.from, &merchants.access.context);
    let server = &context.settings.server;
    let found = context.sound(context.env.store.merchant(id).await).map_err(|error| {
        context.read_failed(&error);
        MerchantError::Unknown
    })?;
    let merchant = found.flatten();
    let challenge = merchant.as_ref().and_then(|merchant| merchant.challenge_answered_by(transfer, server));
    let Some(&Challenge { nonce, authority, .. }) = challenge else {
        tracing::info!(merchant.id = %id, %account, tx.id = %transfer.tx_id, "transfer of @{account} to itself matches no challenge of merchant {id}");
        return Ok(true);
    };
    let mut proof = Proof::new(VerificationMethod::Transfer, Some(authority), context.now());
    // Without a majority, the proof is compared at its first use.
    let known = merchants.ledger.authorities(&BTreeSet::from([account])).await.ok();
    let active = known.and_then(|known| known.get(&account).map(AuthorityDigest::of));
    if active.is_some_and(|active| active != authority) {
        proof.stale_since = Some(context.now());
    }
    let (reply, answer) = oneshot::channel();
    let change = Change::Proven { nonce, proof };
    let message = MerchantMsg::Change { id, change, by: Default::default(), reply: Some(reply) };
    merchants.tell(message).map_err(|_| MerchantError::Unknown)?;
    match answer.await.map_err(|_| MerchantError::Unknown)? {
        Ok(_) => {
            tracing::info!(merchant.id = %id, %account, tx.id = %transfer.tx_id, "merchant {id} proved ownership of @{account} by transfer");
            Ok(true)
        }
        // The challenge has expired, or a crash happened between the proof and the cursor. A damaged record is skipped:
        // scanning continues for all others.
        Err(MerchantError::Ownership(_) | MerchantError::NotFound(_) | MerchantError::Damaged { .. }) => Ok(true),
        Err(error) => Err(error),
    }
}
