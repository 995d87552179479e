//! Transfers that paid no session.

use engine::{account::AccountName, ids::PaymentId, ledger::ChainPosition};

use crate::{
    batch::Unmatched,
    store::{
        error::Read,
        topic::topic,
        wrapped::{Call, Wrapped},
    },
};

/// A transfer that names a session nobody knew: the session, the account it went to, and where it stands.
pub type StrayKey = (PaymentId, AccountName, ChainPosition);

topic! {
    /// Transfers that paid no session.
    UnmatchedTransfers {
        /// Returns the transfers to an account that named no session of ours, newest first, at most `limit`.
        unmatched(account: AccountName, limit: usize) -> Vec<Unmatched>;

        /// Returns a transfer that named no session of ours, by its account and its place on the chain.
        unmatched_at(account: AccountName, place: ChainPosition) -> Option<Unmatched>;

        /// Returns the transfers to an account that named no session of ours and are older than `before`, newest first, at
        /// most `limit`.
        unmatched_before(account: AccountName, before: ChainPosition, limit: usize) -> Vec<Unmatched>;

        /// Returns the transfers that name a session nobody knew when they came and about which nothing is done, by
        /// session, after the entry `after`, at most `limit`.
        waiting_for_sessions(after: Option<StrayKey>, limit: usize) -> Vec<StrayKey>;
    }
}
