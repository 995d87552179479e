//! Verification of a merchant's ledger account: proofs, stale proofs, and changes of a verified account.
//!
//! A merchant may register with any account and receive payments on it. Access to unmatched transfers, and compliance
//! limits shared by all merchants of an account, require verification.

mod challenge;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

pub use challenge::{
    Action, CHALLENGE_LIFETIME, Challenge, MAX_SIGNATURES, Nonce, SignatureCheck, merchant_in_proof_memo,
};
use sha2::{Digest, Sha256};

use crate::{account::AccountName, hive::Authority, ledger::Transfer, merchant::Merchant, mutant, time::Timestamp};

/// Maximum account changes within [`CHANGES_WINDOW`].
pub const MAX_CHANGES: usize = 3;
/// The window of [`MAX_CHANGES`].
pub const CHANGES_WINDOW: Duration = Duration::from_secs(86_400);
/// How long a pending change waits for its proofs.
pub const PENDING_LIFETIME: Duration = Duration::from_secs(7 * 86_400);
/// How long a merchant's former account is watched: until the last session payable to it has ended, at most a day
/// later, plus 30 days.
pub const FORMER_ACCOUNT_WATCH_PERIOD: Duration = Duration::from_secs(31 * 86_400 + 3_600);
/// A challenge with less remaining lifetime is not reused.
const LEAST_TIME_LEFT: Duration = Duration::from_secs(5 * 60);
/// Maximum number of challenges stored; the newest are kept, because a transfer may be read long after its block.
const MAX_CHALLENGES: usize = 8;
/// Maximum number of former verified accounts stored; the newest are kept.
const MAX_FORMER: usize = 5;

/// The SHA-256 digest of an active authority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuthorityDigest(pub [u8; 32]);

impl AuthorityDigest {
    /// Returns the digest of an authority.
    #[must_use]
    pub fn of(authority: &Authority) -> Self {
        Self(Sha256::digest(authority.to_json()).into())
    }
}

/// How an account was verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VerificationMethod {
    /// Signatures over a challenge.
    Signature,
    /// A transfer of the account to itself.
    Transfer,
    /// Confirmation by the operator.
    Operator,
}

impl VerificationMethod {
    /// Every method, in the order of the interface.
    pub const ALL: [Self; 3] = [Self::Signature, Self::Transfer, Self::Operator];

    /// Returns the wire name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Signature => "signature",
            Self::Transfer => "transfer",
            Self::Operator => "operator",
        }
    }
}

/// A proof that a merchant controls an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Proof {
    /// The verification method.
    pub method: VerificationMethod,
    /// When it was given.
    pub at: Timestamp,
    /// The active authority that gave it; `None` until a majority of nodes agrees on it.
    pub authority: Option<AuthorityDigest>,
    /// When a different active authority was detected.
    pub stale_since: Option<Timestamp>,
}

impl Proof {
    /// Returns a new proof.
    #[must_use]
    pub const fn new(method: VerificationMethod, authority: Option<AuthorityDigest>, at: Timestamp) -> Self {
        Self { method, at, authority, stale_since: None }
    }

    /// Returns whether the account's active authority is still the one that gave the proof; `None` if it is unknown.
    /// Confirmations by the operator do not depend on keys.
    fn is_fresh(&self, found: Option<&AuthorityDigest>) -> Option<bool> {
        match self.authority {
            Some(given) if self.method != VerificationMethod::Operator => found.map(|found| *found == given),
            _ => Some(true),
        }
    }
}

/// Whether a merchant's account is verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VerificationStatus {
    /// Not verified.
    Unverified,
    /// Verified.
    Verified,
    /// Verified, but the account's active authority has changed since.
    Stale,
}

impl VerificationStatus {
    /// Every status, in the order of the interface.
    pub const ALL: [Self; 3] = [Self::Unverified, Self::Verified, Self::Stale];

    /// Returns the wire name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unverified => "unverified",
            Self::Verified => "verified",
            Self::Stale => "stale",
        }
    }
}

/// A pending change of a verified account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingChange {
    /// The new account.
    pub account: AccountName,
    /// When it was requested.
    pub requested_at: Timestamp,
    /// The earliest time it takes effect.
    pub effective_at: Timestamp,
    /// The consent of the current account, or the operator's confirmation.
    pub current: Option<Proof>,
    /// The proof of the new account, or the operator's confirmation.
    pub new: Option<Proof>,
}

impl PendingChange {
    /// Returns whether both accounts have agreed.
    #[must_use]
    pub const fn is_proven(&self) -> bool {
        self.current.is_some() && self.new.is_some()
    }

    /// Returns when the change takes effect or lapses.
    #[must_use]
    pub fn due_at(&self) -> Timestamp {
        if self.is_proven() { self.effective_at } else { self.effective_at + PENDING_LIFETIME }
    }
}

/// A former verified account of a merchant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormerAccount {
    /// The account.
    pub account: AccountName,
    /// Its proof.
    pub proof: Proof,
}

/// The verification state of a merchant's account.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ownership {
    /// The proof of the current account.
    pub proof: Option<Proof>,
    /// The pending change.
    pub pending: Option<PendingChange>,
    /// Former verified accounts, oldest first.
    pub former: Vec<FormerAccount>,
    /// Issued challenges, oldest first.
    pub challenges: Vec<Challenge>,
    /// Times of changes and change requests within [`CHANGES_WINDOW`], oldest first.
    pub changed_at: Vec<Timestamp>,
}

impl Ownership {
    /// Returns whether the account is verified.
    #[must_use]
    pub const fn verification_status(&self) -> VerificationStatus {
        match &self.proof {
            None => VerificationStatus::Unverified,
            Some(Proof { stale_since: None, .. }) => VerificationStatus::Verified,
            Some(_) => VerificationStatus::Stale,
        }
    }
}

/// The reason why an account operation was rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// The account is neither the merchant's current nor its pending account.
    #[error("@{0} is neither the merchant's account nor its pending one")]
    OtherAccount(AccountName),
    /// No change is pending.
    #[error("no change of the account is pending")]
    NothingPending,
    /// The challenge does not exist or was already answered.
    #[error("there is no such challenge; it may have been used already")]
    UnknownChallenge,
    /// The challenge was not answered in time.
    #[error("the challenge expired at {at}")]
    Expired {
        /// When it expired.
        at: Timestamp,
    },
    /// A signature is invalid or was made by a key outside the active authority.
    #[error("signature {index} was not made by a key of the account's active authority")]
    Signature {
        /// The index in the request.
        index: usize,
    },
    /// The authority requires no signature.
    #[error("the account's active authority needs no signature, so none proves anything")]
    OpenAuthority,
    /// The account was changed too often.
    #[error("the account may be changed {MAX_CHANGES} times in 24 hours")]
    TooManyChanges {
        /// When the next change is possible.
        again_at: Timestamp,
    },
}

impl Merchant {
    /// Returns the merchant with another account: at once if the current account was never verified, otherwise as a
    /// change that is pending for at least `wait`.
    ///
    /// # Errors
    /// [`Rejection::TooManyChanges`].
    pub fn with_account(&self, account: AccountName, wait: Duration, now: Timestamp) -> Result<Self, Rejection> {
        let is_pending = self.ownership.pending.as_ref().is_some_and(|pending| pending.account == account);
        if account == self.hive_account || is_pending {
            return Ok(self.clone());
        }
        let mut next = self.next(now);
        let ownership = &mut next.ownership;
        ownership.changed_at.retain(|at| now.since(*at) < CHANGES_WINDOW);
        if ownership.changed_at.len() >= MAX_CHANGES && !mutant!("account-changes-unlimited") {
            return Err(Rejection::TooManyChanges { again_at: ownership.changed_at[0] + CHANGES_WINDOW });
        }
        ownership.changed_at.push(now);
        if ownership.proof.is_none() || mutant!("proven-account-changes-immediately") {
            ownership.challenges.clear();
            next.hive_account = account;
        } else {
            let effective_at = if mutant!("account-change-without-wait") { now } else { now + wait };
            ownership.pending =
                Some(PendingChange { account, requested_at: now, effective_at, current: None, new: None });
        }
        Ok(next)
    }

    /// Returns the merchant without its pending change.
    ///
    /// # Errors
    /// [`Rejection::NothingPending`].
    pub fn without_pending(&self, now: Timestamp) -> Result<Self, Rejection> {
        self.ownership.pending.as_ref().ok_or(Rejection::NothingPending)?;
        let mut next = self.next(now);
        next.ownership.pending = None;
        Ok(next)
    }

    /// Returns the account to challenge and the action to authorize. Without `account`, the first account whose answer
    /// is missing.
    ///
    /// # Errors
    /// [`Rejection::OtherAccount`]; [`Rejection::NothingPending`] if there is no change to cancel.
    pub fn challenge_target(
        &self,
        account: Option<AccountName>,
        cancels: bool,
    ) -> Result<(AccountName, Action), Rejection> {
        let current = self.hive_account;
        if let Some(other) = account.filter(|name| cancels && *name != current) {
            return Err(Rejection::OtherAccount(other));
        }
        match (&self.ownership.pending, account) {
            (Some(_), _) if cancels => Ok((current, Action::Cancel)),
            (None, _) if cancels => Err(Rejection::NothingPending),
            (Some(pending), None) if pending.current.is_some() => Ok((pending.account, Action::Verify)),
            (Some(pending), Some(account)) if account == pending.account => Ok((account, Action::Verify)),
            (Some(pending), None) => Ok((current, Action::ChangeTo(pending.account))),
            (Some(pending), Some(account)) if account == current => Ok((current, Action::ChangeTo(pending.account))),
            (None, None) => Ok((current, Action::Verify)),
            (None, Some(account)) if account == current => Ok((current, Action::Verify)),
            (_, Some(account)) => Err(Rejection::OtherAccount(account)),
        }
    }

    /// Returns the merchant with a challenge, and the challenge. An existing challenge is reused while it has enough
    /// time left and the account's active authority is unchanged.
    #[must_use]
    pub fn with_challenge(
        &self,
        (account, action): (AccountName, Action),
        authority: AuthorityDigest,
        nonce: Nonce,
        now: Timestamp,
    ) -> (Self, Challenge) {
        let fits = |challenge: &&Challenge| {
            let is_same = (challenge.account, challenge.action, challenge.authority) == (account, action, authority);
            is_same && now + LEAST_TIME_LEFT <= challenge.expires_at
        };
        if let Some(challenge) = self.ownership.challenges.iter().rev().find(fits) {
            return (self.clone(), challenge.clone());
        }
        let expires_at = now + CHALLENGE_LIFETIME;
        let keys = BTreeSet::new();
        let challenge = Challenge { account, action, authority, nonce, issued_at: now, expires_at, keys };
        let mut next = self.next(now);
        let challenges = &mut next.ownership.challenges;
        challenges.push(challenge.clone());
        challenges.drain(..challenges.len().saturating_sub(MAX_CHALLENGES));
        (next, challenge)
    }

    /// Returns a challenge by its nonce.
    ///
    /// # Errors
    /// [`Rejection::UnknownChallenge`].
    pub fn challenge(&self, nonce: Nonce) -> Result<&Challenge, Rejection> {
        let found = self.ownership.challenges.iter().find(|challenge| challenge.nonce == nonce);
        found.ok_or(Rejection::UnknownChallenge)
    }

    /// Returns the challenge to which an irreversible transfer is a valid response.
    #[must_use]
    pub fn challenge_answered_by(&self, transfer: &Transfer, server: &str) -> Option<&Challenge> {
        self.ownership.challenges.iter().find(|challenge| challenge.is_answered_by(transfer, server, self.id))
    }

    /// Returns the merchant with further keys that signed an incomplete challenge.
    ///
    /// # Errors
    /// [`Rejection::UnknownChallenge`].
    pub fn with_signed_keys(
        &self,
        nonce: Nonce,
        keys: impl IntoIterator<Item = crate::hive::PublicKey>,
        now: Timestamp,
    ) -> Result<Self, Rejection> {
        self.challenge(nonce)?;
        let mut next = self.next(now);
        if let Some(challenge) = next.ownership.challenges.iter_mut().find(|challenge| challenge.nonce == nonce) {
            challenge.keys.extend(keys);
        }
        Ok(next)
    }

    /// Returns the merchant after a challenge was answered. The challenge is removed.
    ///
    /// # Errors
    /// [`Rejection::UnknownChallenge`]; [`Rejection::OtherAccount`] and [`Rejection::NothingPending`] if the challenged
    /// account or change is no longer current.
    pub fn with_proof(&self, nonce: Nonce, proof: Proof, now: Timestamp) -> Result<Self, Rejection> {
        let Challenge { account, action, .. } = *self.challenge(nonce)?;
        let mut next = self.next(now);
        let ownership = &mut next.ownership;
        ownership.challenges.retain(|challenge| challenge.nonce != nonce || mutant!("challenge-answered-twice"));
        let is_current = account == self.hive_account;
        match (action, &mut ownership.pending) {
            (Action::Verify, _) if is_current => ownership.proof = Some(proof),
            (Action::Verify, Some(pending)) if pending.account == account => pending.new = Some(proof),
            (Action::ChangeTo(to), Some(pending)) if is_current && pending.account == to => {
                pending.current = Some(proof);
                ownership.proof = Some(proof);
            }
            (Action::Cancel, pending @ Some(_)) if is_current => *pending = None,
            (Action::Verify, _) => return Err(Rejection::OtherAccount(account)),
            (Action::ChangeTo(_) | Action::Cancel, _) => return Err(Rejection::NothingPending),
        }
        Ok(next)
    }

    /// Returns the merchant after the operator confirmed an account: the current one, or a pending one, which then
    /// needs no proof of either account.
    ///
    /// # Errors
    /// [`Rejection::OtherAccount`].
    pub fn verified_by_operator(&self, account: AccountName, proof: Proof, now: Timestamp) -> Result<Self, Rejection> {
        let mut next = self.next(now);
        match &mut next.ownership.pending {
            _ if account == self.hive_account => next.ownership.proof = Some(proof),
            Some(pending) if pending.account == account => {
                pending.current.get_or_insert(proof);
                pending.new.get_or_insert(proof);
            }
            _ => return Err(Rejection::OtherAccount(account)),
        }
        Ok(next)
    }

    /// Returns the merchant after its due pending change took effect or lapsed; `None` if it is not due. `active` are
    /// the active authorities of the accounts: consent given by a replaced authority, such as stolen keys, is
    /// discarded, and the change waits while an authority is unknown.
    #[must_use]
    pub fn with_due_change_applied(
        &self,
        active: &BTreeMap<AccountName, AuthorityDigest>,
        now: Timestamp,
    ) -> Option<Self> {
        let pending = self.ownership.pending.as_ref().filter(|pending| now >= pending.due_at())?;
        let mut next = self.next(now);
        if let (Some(current), Some(new)) = (pending.current, pending.new) {
            let current = current.is_fresh(active.get(&self.hive_account))?;
            let new = new.is_fresh(active.get(&pending.account))?;
            if !(current && new) {
                let kept = next.ownership.pending.as_mut()?;
                kept.current = kept.current.filter(|_| current);
                kept.new = kept.new.filter(|_| new);
                return Some(next);
            }
        }
        next.ownership.pending = None;
        if let (Some(_), Some(new)) = (pending.current, pending.new) {
            if let Some(proof) = self.ownership.proof {
                let former = &mut next.ownership.former;
                former.retain(|former| former.account != self.hive_account);
                former.push(FormerAccount { account: self.hive_account, proof });
                former.drain(..former.len().saturating_sub(MAX_FORMER));
            }
            next.hive_account = pending.account;
            next.ownership.former.retain(|former| former.account != pending.account);
            next.ownership.proof = Some(new);
        }
        Some(next)
    }

    /// Returns the proof of an account that is or was the merchant's.
    #[must_use]
    pub fn proof_for(&self, account: &AccountName) -> Option<&Proof> {
        if mutant!("rights-without-proof") {
            static GRANTED: Proof = Proof::new(VerificationMethod::Operator, None, Timestamp::EPOCH);
            return Some(&GRANTED);
        }
        if *account == self.hive_account {
            return self.ownership.proof.as_ref();
        }
        self.ownership.former.iter().find(|former| former.account == *account).map(|former| &former.proof)
    }

    /// Returns the merchant after the active authority of an account was read; `None` if nothing changed. A different
    /// authority makes the proof stale.
    #[must_use]
    pub fn with_authority(&self, account: &AccountName, found: AuthorityDigest, now: Timestamp) -> Option<Self> {
        let mut proof = *self.proof_for(account)?;
        match proof.authority {
            None => proof.authority = Some(found),
            Some(known) if known == found || proof.stale_since.is_some() => return None,
            Some(_) => proof.stale_since = Some(now),
        }
        let mut next = self.next(now);
        if *account == self.hive_account {
            next.ownership.proof = Some(proof);
        }
        for former in next.ownership.former.iter_mut().filter(|former| former.account == *account) {
            former.proof = proof;
        }
        Some(next)
    }
}
