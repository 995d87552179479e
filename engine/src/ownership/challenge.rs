//! Account challenges: the text to sign, the equivalent transfer memo, and signature verification.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    time::Duration,
};

use sha2::{Digest, Sha256};

use super::{AuthorityDigest, Rejection};
use crate::{
    account::AccountName,
    hive::{Authority, PublicKey, Role, Signature, check},
    ids::MerchantId,
    ledger::Transfer,
    mutant,
    time::Timestamp,
};

/// How long a challenge is valid.
pub const CHALLENGE_LIFETIME: Duration = Duration::from_secs(15 * 60);
/// Maximum lag of block time behind the local clock when a challenge is issued.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(30);
/// Maximum signatures per request and keys per challenge: the maximum number of members of an authority.
pub const MAX_SIGNATURES: usize = 40;

/// The action that an account authorizes by answering a challenge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    /// The merchant may use the account.
    Verify,
    /// The merchant may receive payments on this account instead.
    ChangeTo(AccountName),
    /// A pending change is cancelled.
    Cancel,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Verify => f.write_str("verify"),
            Self::ChangeTo(account) => write!(f, "change to {account}"),
            Self::Cancel => f.write_str("cancel change"),
        }
    }
}

/// The random part of a challenge.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Nonce(pub [u8; 16]);

impl Nonce {
    /// Parses 32 hex characters.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut bytes = [0; 16];
        hex::decode_to_slice(text, &mut bytes).ok()?;
        Some(Self(bytes))
    }
}

impl fmt::Display for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A challenge for an account. Only this account can answer it, and only once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Challenge {
    /// The account that must answer.
    pub account: AccountName,
    /// The action to authorize.
    pub action: Action,
    /// The account's active authority when the challenge was issued. A transfer is read some time after it was sent: it
    /// proves the authority at that time, not one that has replaced it since.
    pub authority: AuthorityDigest,
    /// The unique nonce.
    pub nonce: Nonce,
    /// When it was issued.
    pub issued_at: Timestamp,
    /// When it expires.
    pub expires_at: Timestamp,
    /// Keys of the account's authority that have signed so far.
    pub keys: BTreeSet<PublicKey>,
}

/// The result of verifying signatures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignatureCheck {
    /// They satisfy the account's active authority.
    Complete,
    /// Valid signatures of these keys, below the threshold.
    Incomplete(BTreeSet<PublicKey>),
    /// The authorities of these accounts are required.
    Unknown(BTreeSet<AccountName>),
}

impl Challenge {
    /// Returns the text to sign: its SHA-256 is the digest.
    #[must_use]
    pub fn text(&self, server: &str, merchant: MerchantId) -> String {
        format!(
            "Hivetill account proof\nserver: {server}\nmerchant: {merchant}\naccount: {}\naction: {}\nnonce: {}\nexpires: {}",
            self.account, self.action, self.nonce, self.expires_at
        )
    }

    /// Returns the digest that is signed.
    #[must_use]
    pub fn digest(&self, server: &str, merchant: MerchantId) -> [u8; 32] {
        Sha256::digest(self.text(server, merchant)).into()
    }

    /// Returns the memo of a transfer of the account to itself, which is an alternative to a signature.
    #[must_use]
    pub fn memo(&self, server: &str, merchant: MerchantId) -> String {
        let Self { account, nonce, .. } = self;
        let agrees = match self.action {
            Action::Verify => format!("may use @{account}"),
            Action::ChangeTo(to) => format!("may change from @{account} to @{to}"),
            Action::Cancel => format!("stays with @{account}"),
        };
        format!("{MEMO_START}{merchant}{MEMO_MIDDLE}{server} {agrees}: {nonce}")
    }

    /// Returns whether an irreversible transfer is a valid response to the challenge.
    #[must_use]
    pub fn is_answered_by(&self, transfer: &Transfer, server: &str, merchant: MerchantId) -> bool {
        let is_sender = transfer.from == self.account || mutant!("proof-by-any-sender");
        let is_own = is_sender && transfer.to == transfer.from;
        let earliest = self.issued_at.minus(CLOCK_TOLERANCE);
        let is_in_time = (earliest..=self.expires_at).contains(&transfer.block_time);
        is_own && (is_in_time || mutant!("late-transfer-proves")) && transfer.memo == self.memo(server, merchant)
    }

    /// Verifies signatures, together with the keys that have signed before, against the active authorities of the
    /// account and its delegates.
    ///
    /// # Errors
    /// [`Rejection::Expired`]; [`Rejection::Signature`] with the index of the first signature that was not made by a
    /// key of the authority.
    pub fn check(
        &self,
        server: &str,
        merchant: MerchantId,
        signatures: &[Signature],
        authorities: &BTreeMap<AccountName, Authority>,
        now: Timestamp,
    ) -> Result<SignatureCheck, Rejection> {
        if now > self.expires_at {
            return Err(Rejection::Expired { at: self.expires_at });
        }
        let digest = self.digest(server, merchant);
        let mut keys = self.keys.clone();
        let mut made_by = Vec::new();
        for (index, signature) in signatures.iter().enumerate() {
            let key = signature.recover(&digest).map_err(|_| Rejection::Signature { index })?;
            made_by.push(key);
            keys.insert(key);
        }
        let required = BTreeSet::from([(Role::Active, self.account)]);
        let denied = match check(&required, authorities, &keys) {
            // With a threshold of 0 no signature is needed to act for the account, so that one proves nothing.
            Err(_) if mutant!("any-signature-proves") => return Ok(SignatureCheck::Complete),
            Ok(()) if !keys.is_empty() => {
                let own = authorities.get(&self.account).is_some_and(|own| own.weight_threshold > 0);
                return if own { Ok(SignatureCheck::Complete) } else { Err(Rejection::OpenAuthority) };
            }
            Ok(()) => return Err(Rejection::Signature { index: 0 }),
            Err(denied) => denied,
        };
        if !denied.unknown.is_empty() {
            return Ok(SignatureCheck::Unknown(denied.unknown));
        }
        let is_member = |key: &PublicKey| authorities.values().any(|authority| authority.key_auths.contains_key(key));
        if let Some(index) = made_by.iter().position(|key| !is_member(key)) {
            return Err(Rejection::Signature { index });
        }
        keys.retain(is_member);
        Ok(SignatureCheck::Incomplete(keys))
    }
}

const MEMO_START: &str = "Merchant ";
const MEMO_MIDDLE: &str = " at ";

/// Returns the merchant in the memo of a proof; `None` unless the transfer is from an account to itself.
#[must_use]
pub fn merchant_in_proof_memo(transfer: &Transfer) -> Option<MerchantId> {
    if transfer.from != transfer.to {
        return None;
    }
    let (merchant, rest) = transfer.memo.strip_prefix(MEMO_START)?.split_once(MEMO_MIDDLE)?;
    let is_known = [" may use @", " may change from @", " stays with @"].iter().any(|words| rest.contains(words));
    merchant.parse().ok().filter(|_| is_known)
}
