//! Checkpoints write the rows of a full segment into the database, beside the commits that follow.

use std::sync::Arc;

use redb::Database;
use tokio::time::Instant;

use crate::embedded::{
    fault::Fault,
    health::Health,
    metrics::CommitMetrics,
    tables::begin_write,
    wal::{entry::Lsn, log, snapshot::Epoch},
};

/// A checkpoint to be made.
#[derive(Clone)]
pub(crate) struct Checkpoint {
    /// The database.
    pub(crate) database: Arc<Database>,
    /// Its immutable memtables. Not a snapshot: a pinned commit keeps every later version in memory.
    pub(crate) epoch: Arc<Epoch>,
    /// Where the log begins once it is durable.
    pub(crate) begin: Lsn,
    /// Counts it.
    pub(crate) metrics: CommitMetrics,
    /// Records a panic.
    pub(crate) health: Arc<Health>,
}

impl Checkpoint {
    /// Writes the rows, durably.
    ///
    /// # Errors
    /// Those of the disk; the log still holds everything, and nothing more may be written.
    pub(crate) fn make(&self) -> Result<(), Fault> {
        let begun_at = Instant::now();
        let transaction = begin_write(&self.database)?;
        self.epoch.write_immutable(&transaction)?;
        log::begin_at(transaction, self.begin)?;
        self.metrics.checkpointed(begun_at.elapsed());
        Ok(())
    }
}
