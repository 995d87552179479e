//! ClaimRecord transactions.

use engine::{account::AccountName, ledger::TxId, time::Timestamp, x402::ClaimRecord};

use crate::store::{
    error::Read,
    topic::topic,
    wrapped::{Call, Wrapped},
};

topic! {
    /// ClaimRecord transactions.
    Claims {
        /// Returns the claims of no session of ours whose outcome is open.
        open_facilitations() -> Vec<ClaimRecord>;

        /// Returns claims that may be forgotten and whose transactions expired before `expired_before`, among the `limit` claims
        /// after `after`, and where the walk goes on; none at its end.
        forgettable_claims(expired_before: Timestamp, after: Option<TxId>, limit: usize) -> (Vec<ClaimRecord>, Option<TxId>);

        /// Returns who claimed a transaction, ever.
        claim(tx_id: TxId) -> Option<ClaimRecord>;

        /// Returns the claim whose payer used a nonce for a payee, ever.
        claim_by_nonce(pay_to: AccountName, nonce: String) -> Option<ClaimRecord>;

        /// Returns the claim whose payer used a payment identifier for a payee, ever.
        claim_by_identifier(pay_to: AccountName, identifier: String) -> Option<ClaimRecord>;
    }
}
