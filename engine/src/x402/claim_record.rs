//! Records of claimed transactions: each transaction and nonce is claimed once, whatever it pays for.

use crate::{
    account::AccountName,
    ids::{MerchantId, PaymentId},
    ledger::TxId,
    money::Money,
    mutant,
    payment::ClaimFinality,
    time::Timestamp,
    x402::{PayerProof, Reason},
};

/// A claimed transaction. Records are kept for ever, unless [`ClaimRecord::is_forgettable`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimRecord {
    /// The transaction.
    pub tx_id: TxId,
    /// The payee. Nonces and identifiers are unique per payee.
    pub pay_to: AccountName,
    /// The payer's nonce.
    pub nonce: String,
    /// The payer's `payment-identifier`, if any.
    pub identifier: Option<String>,
    /// Recognizes the payer when it shows the payment again.
    pub proof: PayerProof,
    /// What the transaction pays for.
    pub purpose: Purpose,
    /// The outcome; for a session that was paid, the payment's state is authoritative.
    pub outcome: ClaimOutcome,
    /// When it was claimed.
    pub at: Timestamp,
}

/// What a claimed transaction pays for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Purpose {
    /// A session of this engine.
    Session(PaymentId),
    /// A resource of another server; this engine only settles the payment.
    Facilitated(Box<Facilitation>),
}

/// A payment that is settled for another server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facilitation {
    /// The payer.
    pub payer: AccountName,
    /// The merchant whose API key the request carried.
    pub seller: Option<MerchantId>,
    /// The digest of the seller's idempotency key; the success is reported under this key and no other.
    pub request_key: Option<[u8; 32]>,
    /// The amount.
    pub amount: Money,
    /// The resource, as its server describes it.
    pub resource: String,
    /// The signed transaction as JSON, to be broadcast again.
    pub signed_json: String,
    /// The chain includes it until then.
    pub expiration: Timestamp,
    /// When it counts as settled.
    pub finality: ClaimFinality,
}

/// The settlement outcome of a claimed transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClaimOutcome {
    /// In flight, or decided by its session.
    Open,
    /// As [`Open`](Self::Open), and several engines may have broadcast the transaction: a refusal proves nothing.
    Shared,
    /// The transaction is on the chain.
    Settled {
        /// Whether the success was reported to a caller; it is reported once.
        is_reported: bool,
        /// The block that includes it; `None` if a node's answer sufficed.
        block_num: Option<u32>,
    },
    /// The chain refused it before it was ever accepted.
    Refused {
        /// The reason.
        reason: Reason,
        /// The reason for people.
        message: String,
    },
    /// Its expiration passed and it is not on the chain.
    Expired,
}

impl ClaimOutcome {
    /// Returns whether the outcome is undecided, or decided by the claim's session.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        matches!(self, Self::Open | Self::Shared)
    }
}

impl ClaimRecord {
    /// Returns whether the record may be deleted once its transaction has expired: no merchant asked for the payment, and
    /// its outcome is decided.
    #[must_use]
    pub fn is_forgettable(&self) -> bool {
        matches!(&self.purpose, Purpose::Facilitated(facilitation) if facilitation.seller.is_none() || mutant!("sellers-claims-deleted"))
            && !self.outcome.is_open()
    }

    /// Returns whether the chain has refused the transaction of a facilitated payment since before `time`.
    #[must_use]
    pub fn expired_before(&self, time: Timestamp) -> bool {
        matches!(&self.purpose, Purpose::Facilitated(facilitation) if facilitation.expiration < time)
    }

    /// Returns what the transaction pays for at another server, unless it is certain that it never did.
    #[must_use]
    pub fn sale(&self) -> Option<&Facilitation> {
        match (&self.purpose, &self.outcome) {
            (
                Purpose::Facilitated(facilitation),
                ClaimOutcome::Open | ClaimOutcome::Shared | ClaimOutcome::Settled { .. },
            ) => Some(facilitation),
            _ => None,
        }
    }
}
