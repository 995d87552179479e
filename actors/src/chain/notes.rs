//! The stored positions of readers of the ledger besides the scanner.

use std::time::Duration;

use engine::time::Timestamp;
use storage::Write;

/// The last block whose virtual transfers are read: 4 bytes, big endian.
pub(crate) const VIRTUAL_TRANSFERS: &str = "virtual transfers";
/// The block time up to which the store is reconciled with the ledger: milliseconds, 8 bytes, big endian.
pub(crate) const RECONCILED: &str = "books checked";

/// Returns the write that advances the position of virtual transfers from one block to another.
pub(crate) fn virtual_transfers_read_to(block_num: u32, expected: Option<u32>) -> Write {
    let value = |number: u32| number.to_be_bytes().to_vec();
    Write::Note { name: VIRTUAL_TRANSFERS, value: value(block_num), expected: expected.map(value) }
}

/// Returns the write that starts the reconciliation after a block; stored with the scanner's first cursor.
pub(crate) fn reconcile_after(time: Timestamp) -> Write {
    reconciled_to(time + Duration::from_secs(1), None)
}

/// Returns the write that advances the time of the reconciliation.
pub(crate) fn reconciled_to(time: Timestamp, expected: Option<Timestamp>) -> Write {
    let value = |time: Timestamp| time.millis().to_be_bytes().to_vec();
    Write::Note { name: RECONCILED, value: value(time), expected: expected.map(value) }
}
