//! Claimed transactions.

use engine::{account::AccountName, ledger::TxId, time::Timestamp};

use crate::{
    batch::Claimed,
    store::{
        error::Read,
        topic::topic,
        wrapped::{Call, Wrapped},
    },
};

topic! {
    /// Claimed transactions.
    Claims {
        /// Returns the claims of no session of ours whose fate is open.
        open_facilitations() -> Vec<Claimed>;

        /// Returns claims that may be forgotten and whose transactions expired before `expired_before`, among the `limit` claims
        /// after `after`, and where the walk goes on; none at its end.
        forgettable_claims(expired_before: Timestamp, after: Option<TxId>, limit: usize) -> (Vec<Claimed>, Option<TxId>);

        /// Returns who claimed a transaction, ever.
        claim(tx_id: TxId) -> Option<Claimed>;

        /// Returns the claim whose payer used a nonce for a payee, ever.
        claim_by_nonce(pay_to: AccountName, nonce: String) -> Option<Claimed>;

        /// Returns the claim whose payer used a payment identifier for a payee, ever.
        claim_by_identifier(pay_to: AccountName, identifier: String) -> Option<Claimed>;
    }
}
