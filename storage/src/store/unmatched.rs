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

/// The key of an unmatched transfer that names an unknown session: session, receiving account, position on the ledger.
pub type WaitingTransferKey = (PaymentId, AccountName, ChainPosition);

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

        /// Returns at most `limit` unhandled transfers whose session was unknown when they arrived, ordered by session,
        /// after `after`.
        waiting_for_sessions(after: Option<WaitingTransferKey>, limit: usize) -> Vec<WaitingTransferKey>;
    }
}
