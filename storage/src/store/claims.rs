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

        /// Returns the claims of those of the transactions that are claimed. Damaged records are skipped.
        claims(tx_ids: Vec<TxId>) -> Vec<ClaimRecord>;

        /// Returns the claim that overlaps with a payment to a payee: of one of the transactions, or else with the payment
        /// identifier, or else with the nonce.
        overlapping_claim(
            pay_to: AccountName,
            tx_ids: Vec<TxId>,
            identifier: Option<String>,
            nonce: String,
        ) -> Option<ClaimRecord>;
    }
}
