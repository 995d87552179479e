//! What the transfers of a block mean here.

use engine::{ids::PaymentId, ledger::Transfer};
use storage::UnmatchedReason;

/// What a transfer of a block means here.
pub(crate) struct ClassifiedTransfer<'b> {
    pub(crate) transfer: &'b Transfer,
    pub(crate) classification: Classification,
    /// The payment whose money it sends back.
    pub(crate) refunds: Option<PaymentId>,
}

/// Whom a transfer concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Classification {
    /// A session; whether the memo said more than its name.
    Session(PaymentId, bool),
    /// A merchant's account, though no session.
    Account(UnmatchedReason),
    /// A merchant's account, and somebody's server that was paid there by x402.
    Sale,
    /// A merchant that proves an account.
    Proof,
    /// Nobody here.
    Nobody,
}
