//! Checkpoints: what a full log holds is written into the database, beside the commits that follow.

use std::sync::Arc;

use redb::Database;
use tokio::time::Instant;

use crate::embedded::{
    fault::Fault,
    health::Health,
    metrics::CommitMetrics,
    tables::begin_write,
    wal::{
        log::{self, Lsn},
        snapshot::Epoch,
    },
};

/// What is to be written.
#[derive(Clone)]
pub(crate) struct Checkpoint {
    /// Where to.
    pub(crate) database: Arc<Database>,
    /// Its immutable memtables. Not a snapshot: a commit that somebody holds keeps every version that came since.
    pub(crate) epoch: Arc<Epoch>,
    /// Where the log begins then.
    pub(crate) turn: Lsn,
    /// Where it is counted.
    pub(crate) metrics: CommitMetrics,
    /// Where a panic is noted.
    pub(crate) health: Arc<Health>,
}

impl Checkpoint {
    /// Writes it, durably.
    ///
    /// # Errors
    /// Those of the disk; the log still holds everything, and nothing more may be written.
    pub(crate) fn make(&self) -> Result<(), Fault> {
        let begun_at = Instant::now();
        let transaction = begin_write(&self.database)?;
        self.epoch.write_immutable(&transaction)?;
        log::begin_at(transaction, self.turn)?;
        self.metrics.checkpointed(begun_at.elapsed());
        Ok(())
    }
}
