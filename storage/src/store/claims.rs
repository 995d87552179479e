//! Claimed x402 transactions.

use engine::{account::AccountName, ledger::TxId, time::Timestamp, x402::ClaimRecord};

use crate::store::{
    error::Read,
    topic::topic,
    wrapped::{Call, Wrapped},
};

topic! {
    /// Claimed x402 transactions.
    Claims {
        /// Returns the open claims that belong to no session.
        open_facilitations() -> Vec<ClaimRecord>;

        /// Returns, among the `limit` claims after `after`, those that can be deleted and whose transactions expired
        /// before `expired_before`; and the claim to continue after, none at the end.
        forgettable_claims(expired_before: Timestamp, after: Option<TxId>, limit: usize) -> (Vec<ClaimRecord>, Option<TxId>);

        /// Returns the claim of a transaction.
        claim(tx_id: TxId) -> Option<ClaimRecord>;

        /// Returns the claim with which a payer used a nonce for a payee.
        claim_by_nonce(pay_to: AccountName, nonce: String) -> Option<ClaimRecord>;

        /// Returns the claim with which a payer used a payment identifier for a payee.
        claim_by_identifier(pay_to: AccountName, identifier: String) -> Option<ClaimRecord>;
    }
}
