//! Unmatched transfers.

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
    /// Unmatched transfers: transfers to a watched account that pay no session.
    UnmatchedTransfers {
        /// Returns at most `limit` unmatched transfers of an account, newest first.
        unmatched(account: AccountName, limit: usize) -> Vec<Unmatched>;

        /// Returns an unmatched transfer by its account and its position on the chain.
        unmatched_at(account: AccountName, place: ChainPosition) -> Option<Unmatched>;

        /// Returns at most `limit` unmatched transfers of an account before the position `before`, newest first.
        unmatched_before(account: AccountName, before: ChainPosition, limit: usize) -> Vec<Unmatched>;

        /// Returns at most `limit` transfers after `after` that are not handled and whose session was unknown when they
        /// arrived, ordered by session.
        waiting_for_sessions(after: Option<WaitingTransferKey>, limit: usize) -> Vec<WaitingTransferKey>;
    }
}
