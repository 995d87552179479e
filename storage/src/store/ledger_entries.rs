//! Ledger entries and the results of reconciliation.

use engine::{
    account::AccountName,
    reconciliation::{Day, LedgerEntry},
    time::Timestamp,
};

use crate::store::{
    error::Read,
    topic::topic,
    wrapped::{Call, Wrapped},
};

/// Where a page of the books ends; the next begins after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BookedPlace {
    pub(crate) at_ms: u64,
    pub(crate) tx_id: [u8; 20],
    pub(crate) op_in_tx: u32,
    pub(crate) kind: u32,
    pub(crate) payment: u128,
}

topic! {
    /// Ledger entries and the results of reconciliation.
    LedgerEntries {
        /// Returns what was counted for an account in blocks from `span.0` up to but without `span.1`, after a place, at most
        /// `limit`, and where the next page begins if there is one.
        booked(account: AccountName, span: (Timestamp, Timestamp), after: Option<BookedPlace>, limit: usize) -> (Vec<LedgerEntry>, Option<BookedPlace>);

        /// Returns what the checks of days that began before `before` said, newest first, at most `limit`.
        books(before: Option<Timestamp>, limit: usize) -> Vec<Day>;
    }
}
