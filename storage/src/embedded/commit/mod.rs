//! Group commit: batches are checked against the stored rows and written as one WAL entry.

pub(crate) mod accounts;
pub(crate) mod apply;
pub(crate) mod audit;
pub(crate) mod billing;
pub(crate) mod claims;
pub(crate) mod commit_ids;
pub(crate) mod committer;
pub(crate) mod compliance;
pub(crate) mod counts;
pub(crate) mod duties;
pub(crate) mod group;
pub(crate) mod idempotency;
pub(crate) mod indexes;
pub(crate) mod ledger_entries;
pub(crate) mod outbox;
pub(crate) mod prepared;
pub(crate) mod transaction;
pub(crate) mod transfers;
pub(crate) mod unmatched;

mod checkpoints;
#[cfg(test)]
mod interleavings;
mod queue;
mod sync;
pub(crate) mod writer;
