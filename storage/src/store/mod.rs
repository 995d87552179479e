//! What can be read and how it is asked for: the [`Store`], query types and their results.

pub(crate) mod accounts;
pub(crate) mod audit;
pub(crate) mod billing;
pub(crate) mod chain;
pub(crate) mod claims;
pub(crate) mod compliance;
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
    batch::{Batch, CommitError},
    store::{
        accounts::Accounts, audit::AuditLog, billing::Billing, chain::Chain, claims::Claims, compliance::Compliance,
        events::Events, idempotency::IdempotencyKeys, ledger_entries::LedgerEntries, merchants::Merchants,
        notes::Notes, outbox::Outbox, payments::Payments, unmatched::UnmatchedTransfers,
    },
};

/// Everything that survives a restart: the reads of every topic, and one way to write.
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
    + 'static
{
    /// Makes a batch durable, or refuses it whole. An `Ok` means it is on disk.
    ///
    /// # Errors
    /// See [`CommitError`]; only [`CommitError::Unknown`] leaves the batch's outcome open.
    fn commit(&self, batch: Batch) -> BoxFuture<'_, Result<(), CommitError>>;

    /// Returns how many damaged rows were met since the store was opened. They are served to nobody; a verification names
    /// them all.
    fn damaged_rows(&self) -> u64 {
        0
    }

    /// Indexes the words of at most `max` payments for search, oldest first, and returns of how many. Search finds
    /// the others, too, but has to read them; call this when there is little else to do, and at once again while it
    /// returns `max`. A store that needs no such help does nothing.
    ///
    /// # Errors
    /// As [`Store::commit`].
    fn index_search(&self, now: Timestamp, max: usize) -> BoxFuture<'_, Result<usize, CommitError>> {
        let _ = (now, max);
        Box::pin(std::future::ready(Ok(0)))
    }
}
