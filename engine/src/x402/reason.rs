//! Why an x402 payment is refused: one closed list of words.

use crate::{account::AccountName, ledger::TxId};

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $word:literal,)*) => {
        /// Why a payment is refused. The words are the interface's and never change.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Reason {
            $($(#[$doc])* $name,)*
        }

        impl Reason {
            /// Every reason, in the order of the list.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Reads a word of the list.
            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|reason| reason.as_str() == text)
            }

            /// Returns the wire name.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $word,)* }
            }
        }
    };
}

reasons! {
    /// The payer has less than it wants to pay.
    InsufficientFunds = "insufficient_funds",
    /// Another network than ours.
    InvalidNetwork = "invalid_network",
    /// Not a payment payload.
    InvalidPayload = "invalid_payload",
    /// The requirements are not requirements.
    InvalidPaymentRequirements = "invalid_payment_requirements",
    /// The scheme of payload and requirements differ.
    InvalidScheme = "invalid_scheme",
    /// A scheme we do not take.
    UnsupportedScheme = "unsupported_scheme",
    /// A version that is neither 1 nor 2.
    InvalidX402Version = "invalid_x402_version",
    /// The chain refused the transaction.
    InvalidTransactionState = "invalid_transaction_state",
    /// We could not verify: our fault, or a ledger node's; never the payer's.
    UnexpectedVerifyError = "unexpected_verify_error",
    /// We could not settle: our fault, or a ledger node's; never the payer's.
    UnexpectedSettleError = "unexpected_settle_error",
    /// The transaction, or its nonce, pays for something already.
    DuplicateSettlement = "duplicate_settlement",
    /// It is on its way and nobody knows yet; ask again with the same payload.
    SettlementPending = "settlement_pending",
    /// The transaction or the requirements are past their time.
    PaymentExpired = "payment_expired",
    /// What the payer accepted is not what was required.
    AcceptedRequirementsMismatch = "accepted_requirements_mismatch",
    /// No such session.
    SessionNotFound = "session_not_found",
    /// The session takes no payment any more.
    SessionNotPending = "session_not_pending",
    /// The session's time is over.
    SessionExpired = "session_expired",
    /// The session's cancellation is requested and not decided yet.
    SessionCancelling = "session_cancelling",
    /// The merchant does not take x402.
    X402Disabled = "x402_disabled",
    /// The merchant is switched off.
    MerchantInactive = "merchant_inactive",
    /// Too many requests.
    RateLimited = "rate_limited",
    /// Not exactly the transfers that are asked for.
    Operations = "invalid_exact_hive_payload_operations",
    /// A transfer goes elsewhere.
    RecipientMismatch = "invalid_exact_hive_payload_recipient_mismatch",
    /// The transfers have different senders.
    SenderMismatch = "invalid_exact_hive_payload_sender_mismatch",
    /// The receiver pays itself.
    SelfPayment = "invalid_exact_hive_payload_self_payment",
    /// Another currency.
    AssetMismatch = "invalid_exact_hive_payload_asset_mismatch",
    /// Not the exact amount, where it must be exact.
    AmountMismatch = "invalid_exact_hive_payload_amount_mismatch",
    /// Less than the amount.
    Amount = "invalid_exact_hive_payload_amount",
    /// A memo that is not this session's.
    MemoMismatch = "invalid_exact_hive_payload_memo_mismatch",
    /// It could be broadcast for longer than we are ready to wait.
    ExpirationTooFar = "invalid_exact_hive_payload_expiration_too_far",
    /// A signature that does not hold.
    Signature = "invalid_exact_hive_payload_signature",
    /// The keys that signed may not move the payer's money.
    Authority = "invalid_exact_hive_payload_authority",
    /// The payer's account does not exist.
    AccountNotFound = "invalid_exact_hive_payload_account_not_found",
}

/// A refusal, with what is known of the payment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {message}", reason.as_str())]
pub struct Refused {
    /// The word.
    pub reason: Reason,
    /// A sentence for people.
    pub message: String,
    /// The payer, once its signatures are verified.
    pub payer: Option<AccountName>,
    /// The caller's own transaction, where it is in flight or was settled for the same thing before.
    pub tx_id: Option<TxId>,
}

impl Refused {
    /// Returns a refusal of which no more is known.
    #[must_use]
    pub fn new(reason: Reason, message: impl std::fmt::Display) -> Self {
        Self { reason, message: message.to_string(), payer: None, tx_id: None }
    }

    /// Adds the payer, whose signatures are verified.
    #[must_use]
    pub fn by(mut self, payer: &AccountName) -> Self {
        self.payer = Some(*payer).filter(|_| !crate::mutant!("payer-not-named"));
        self
    }

    /// Adds the transaction.
    #[must_use]
    pub const fn with_tx(mut self, tx_id: TxId) -> Self {
        self.tx_id = Some(tx_id);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vocabulary_is_closed_and_has_no_word_twice() {
        let mut words: Vec<_> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
        assert_eq!(words.len(), 33);
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), 33);
    }
}
