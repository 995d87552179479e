//! Reasons for refusing an x402 payment: a closed list.

use crate::{account::AccountName, ledger::TxId};

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $word:literal,)*) => {
        /// The reason why a payment is refused. The names are part of the interface and never change.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Reason {
            $($(#[$doc])* $name,)*
        }

        impl Reason {
            /// Every reason, in order.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Parses the wire name.
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
    /// The payer's balance is insufficient.
    InsufficientFunds = "insufficient_funds",
    /// Not the supported network.
    InvalidNetwork = "invalid_network",
    /// Not a payment payload.
    InvalidPayload = "invalid_payload",
    /// The requirements are not requirements.
    InvalidPaymentRequirements = "invalid_payment_requirements",
    /// The scheme of payload and requirements differ.
    InvalidScheme = "invalid_scheme",
    /// Not a supported scheme.
    UnsupportedScheme = "unsupported_scheme",
    /// A version that is neither 1 nor 2.
    InvalidX402Version = "invalid_x402_version",
    /// The chain rejected the transaction.
    InvalidTransactionState = "invalid_transaction_state",
    /// Verification failed because of an error of the service or of a ledger node.
    UnexpectedVerifyError = "unexpected_verify_error",
    /// Settlement failed because of an error of the service or of a ledger node.
    UnexpectedSettleError = "unexpected_settle_error",
    /// The transaction or its nonce was already used.
    DuplicateSettlement = "duplicate_settlement",
    /// The outcome is not known yet; retry with the same payload.
    SettlementPending = "settlement_pending",
    /// The transaction or the requirements have expired.
    PaymentExpired = "payment_expired",
    /// The accepted requirements differ from the required ones.
    AcceptedRequirementsMismatch = "accepted_requirements_mismatch",
    /// No such session.
    SessionNotFound = "session_not_found",
    /// The session is no longer pending.
    SessionNotPending = "session_not_pending",
    /// The session has expired.
    SessionExpired = "session_expired",
    /// The session's cancellation is requested and not decided yet.
    SessionCancelling = "session_cancelling",
    /// The merchant does not accept x402 payments.
    X402Disabled = "x402_disabled",
    /// The merchant is inactive.
    MerchantInactive = "merchant_inactive",
    /// Too many requests.
    RateLimited = "rate_limited",
    /// Not exactly the required transfers.
    Operations = "invalid_exact_hive_payload_operations",
    /// A transfer to another recipient.
    RecipientMismatch = "invalid_exact_hive_payload_recipient_mismatch",
    /// The transfers have different senders.
    SenderMismatch = "invalid_exact_hive_payload_sender_mismatch",
    /// The payee pays itself.
    SelfPayment = "invalid_exact_hive_payload_self_payment",
    /// Another currency.
    AssetMismatch = "invalid_exact_hive_payload_asset_mismatch",
    /// Not the exact amount (version 2).
    AmountMismatch = "invalid_exact_hive_payload_amount_mismatch",
    /// Less than the amount.
    Amount = "invalid_exact_hive_payload_amount",
    /// The memo does not match.
    MemoMismatch = "invalid_exact_hive_payload_memo_mismatch",
    /// The expiration is too far in the future.
    ExpirationTooFar = "invalid_exact_hive_payload_expiration_too_far",
    /// An invalid signature.
    Signature = "invalid_exact_hive_payload_signature",
    /// The signatures do not satisfy the payer's active authority.
    Authority = "invalid_exact_hive_payload_authority",
    /// The payer's account does not exist.
    AccountNotFound = "invalid_exact_hive_payload_account_not_found",
}

/// The refusal of a payment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {message}", reason.as_str())]
pub struct Refused {
    /// The reason.
    pub reason: Reason,
    /// The message for people.
    pub message: String,
    /// The payer, once its signatures are verified.
    pub payer: Option<AccountName>,
    /// The caller's own transaction, if it is in flight or was already settled for the same target.
    pub tx_id: Option<TxId>,
}

impl Refused {
    /// Returns a refusal without payer and transaction.
    #[must_use]
    pub fn new(reason: Reason, message: impl std::fmt::Display) -> Self {
        Self { reason, message: message.to_string(), payer: None, tx_id: None }
    }

    /// Adds the payer, after its signatures were verified.
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
    fn reasons_have_unique_names() {
        let mut words: Vec<_> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
        assert_eq!(words.len(), 33);
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), 33);
    }
}
