//! The [`Store`] trait, its queries and their results.

pub(crate) mod accounts;
pub(crate) mod audit;
pub(crate) mod billing;
pub(crate) mod chain;
pub(crate) mod claims;
pub(crate) mod compliance;
pub(crate) mod duties;
pub(crate) mod error;
pub(crate) mod events;
pub(crate) mod idempotency;
pub(crate) mod ledger_entries;
pub(crate) mod merchants;
pub(crate) mod notes;
pub(crate) mod outbox;
pub(crate) mod page;
pub(crate) mod payments;
pub mod prelude;
pub(crate) mod report;
pub(crate) mod topic;
pub(crate) mod unmatched;
pub(crate) mod wrapped;

use engine::time::Timestamp;
use futures_util::future::BoxFuture;

use crate::{
    batch::{Batch, CommitError, CommitId, Resolution},
    store::{
        accounts::Accounts, audit::AuditLog, billing::Billing, chain::Chain, claims::Claims, compliance::Compliance,
        duties::Duties, events::Events, idempotency::IdempotencyKeys, ledger_entries::LedgerEntries,
        merchants::Merchants, notes::Notes, outbox::Outbox, payments::Payments, unmatched::UnmatchedTransfers,
    },
};

/// All durable state: the reads of every topic, and one method to write.
pub trait Store:
    Merchants
    + Accounts
    + Payments
    + Claims
    + IdempotencyKeys
    + Chain
    + UnmatchedTransfers
    + Outbox
    + Events
    + LedgerEntries
    + Compliance
    + Billing
    + AuditLog
    + Notes
    + Duties
    + 'static
{
    /// Commits a batch or rejects it as a whole. `Ok` means that it is durable.
    ///
    /// # Errors
    /// See [`CommitError`]. [`CommitError::Unknown`] means that the batch may or may not be written. A batch whose id was committed or
    /// forbidden before is rejected with [`CommitError::Conflict`].
    fn commit(&self, batch: Batch) -> BoxFuture<'_, Result<(), CommitError>>;

    /// Resolves the unknown outcome of a commit by a write: waits for a commit that still runs, and forbids one that never
    /// happened. Idempotent.
    ///
    /// # Errors
    /// [`CommitError::Unavailable`] if the store is unreachable: retry later. [`CommitError::Unknown`] if the store has failed
    /// permanently: the process must exit.
    fn resolve(&self, id: CommitId) -> BoxFuture<'_, Result<Resolution, CommitError>>;

    /// Returns whether several engines use the store concurrently. An engine that does not share its store holds every duty.
    fn is_shared(&self) -> bool {
        false
    }

    /// Returns the number of damaged rows that reads found since the store was opened. Such rows are never returned; a
    /// verification lists them all.
    fn damaged_rows(&self) -> u64 {
        0
    }

    /// Adds the words of at most `max` payments to the search index, oldest first, and returns the number of payments.
    /// Search finds payments that are not indexed, too, but has to read each of them. Call this when the system is
    /// idle, and again at once if it returned `max`. A store that needs no search index does nothing.
    ///
    /// # Errors
    /// As [`Store::commit`].
    fn index_search(&self, now: Timestamp, max: usize) -> BoxFuture<'_, Result<usize, CommitError>> {
        let _ = (now, max);
        Box::pin(std::future::ready(Ok(0)))
    }
}
