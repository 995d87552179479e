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

/// The key of a ledger entry. A next page starts after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LedgerEntryKey {
    pub(crate) at_ms: u64,
    pub(crate) tx_id: [u8; 20],
    pub(crate) op_in_tx: u32,
    pub(crate) kind: u32,
    pub(crate) payment: u128,
}

topic! {
    /// Ledger entries and the results of reconciliation.
    LedgerEntries {
        /// Returns at most `limit` ledger entries of an account in blocks from `span.0` (inclusive) to `span.1` (exclusive),
        /// after `after`, and the key to continue from if there are more.
        ledger_entries(account: AccountName, span: (Timestamp, Timestamp), after: Option<LedgerEntryKey>, limit: usize) -> (Vec<LedgerEntry>, Option<LedgerEntryKey>);

        /// Returns at most `limit` daily reconciliations of days that began before `before`, newest first.
        reconciled_days(before: Option<Timestamp>, limit: usize) -> Vec<Day>;
    }
}
