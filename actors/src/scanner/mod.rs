//! Scanning of the ledger: irreversible blocks, and virtual operations, which blocks do not contain.

pub(crate) mod blocks;
pub(crate) mod classification;
mod failures;
pub(crate) mod unknown_operations;
pub(crate) mod virtual_transfers;
