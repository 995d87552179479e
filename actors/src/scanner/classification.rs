//! The classification of the transfers of a block.

use engine::{ids::PaymentId, ledger::Transfer};
use storage::UnmatchedReason;

/// A transfer with its classification.
pub(crate) struct ClassifiedTransfer<'b> {
    pub(crate) transfer: &'b Transfer,
    pub(crate) classification: Classification,
    /// The payment that the transfer refunds, by its memo.
    pub(crate) refunds: Option<PaymentId>,
}

/// The purpose of a transfer, as far as this engine is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Classification {
    /// Pays a session. The flag is set if the memo contains more than the session id.
    Session(PaymentId, bool),
    /// Goes to a merchant's account and matches no session.
    Account(UnmatchedReason),
    /// Goes to a merchant's account and was settled by x402 for another server.
    Sale,
    /// Proves the ownership of an account.
    Proof,
    /// Unrelated to this engine.
    Nobody,
}
