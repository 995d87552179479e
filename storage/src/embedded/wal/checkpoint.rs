//! A checkpoint writes the rows of a sealed WAL segment into the database, concurrently with later commits.

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

/// A checkpoint to run.
#[derive(Clone)]
pub(crate) struct Checkpoint {
    /// The database.
    pub(crate) database: Arc<Database>,
    /// The tables with the sealed memtables. Not a snapshot: a pinned commit would keep every later version in memory.
    pub(crate) epoch: Arc<Epoch>,
    /// The LSN at which the log begins once the checkpoint is durable.
    pub(crate) begin: Lsn,
    /// Records the duration.
    pub(crate) metrics: CommitMetrics,
    /// Records a panic.
    pub(crate) health: Arc<Health>,
}

impl Checkpoint {
    /// Writes the rows durably.
    ///
    /// # Errors
    /// Those of the disk. The log still has every entry, and no more writes are allowed.
    pub(crate) fn make(&self) -> Result<(), Fault> {
        let begun_at = Instant::now();
        let transaction = begin_write(&self.database)?;
        self.epoch.write_immutable(&transaction)?;
        log::begin_at(transaction, self.begin)?;
        self.metrics.checkpointed(begun_at.elapsed());
        Ok(())
    }
}
