//! The notes of the store that say how far the ledger was read by others than the scanner.

use std::time::Duration;

use engine::time::Timestamp;
use storage::Write;

/// Up to which block virtual transfers are read: 4 bytes, big endian.
pub(crate) const VIRTUAL_TRANSFERS: &str = "virtual transfers";
/// Up to which block time the store is reconciled with the ledger: milliseconds, 8 bytes, big endian.
pub(crate) const RECONCILED: &str = "books checked";

/// Returns the write by which virtual transfers are read after a block: stored with the scanner's first cursor.
pub(crate) fn virtual_transfers_read_to(block_num: u32) -> Write {
    Write::Note { name: VIRTUAL_TRANSFERS, value: block_num.to_be_bytes().to_vec() }
}

/// Returns the write by which the reconciliation begins after a block: stored with the scanner's first cursor.
pub(crate) fn reconcile_after(time: Timestamp) -> Write {
    reconciled_to(time + Duration::from_secs(1))
}

/// Returns the write that records up to which block time the store is reconciled.
pub(crate) fn reconciled_to(time: Timestamp) -> Write {
    Write::Note { name: RECONCILED, value: time.millis().to_be_bytes().to_vec() }
}
