//! Reading the ledger: irreversible blocks, and the virtual operations that no block contains.

pub(crate) mod blocks;
pub(crate) mod classification;
mod failures;
pub(crate) mod unknown_operations;
pub(crate) mod virtual_transfers;
