//! Group commit: batches are checked against the stored rows and written as one WAL entry.

pub(crate) mod accounts;
pub(crate) mod apply;
pub(crate) mod billing;
pub(crate) mod claims;
pub(crate) mod committer;
pub(crate) mod compliance;
pub(crate) mod counts;
pub(crate) mod idempotency;
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
pub(crate) mod writer;

/// What the threads of the commit path synchronize with. `interleavings` has another module of this name, with loom's.
mod sync {
    pub(super) use std::{
        sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc},
        thread,
    };
}
