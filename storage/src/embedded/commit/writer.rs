//! The writer: checks a group of batches against the stored rows, makes it durable in the write-ahead log, and runs
//! checkpoints concurrently with commits.

use std::{sync::Arc, time::Duration};

use redb::Database;
use tokio::time::Instant;

use super::{
    checkpoints::{Checkpoints, Job, Segments},
    queue::{Inbox, Write},
};
use crate::{
    batch::CommitError,
    embedded::{
        commit::{commit_ids::CommitIds, group::Group, prepared::Prepared, transaction::Transaction},
        damage::DamagedRows,
        fault::Fault,
        health::{Health, Watch},
        metrics::CommitMetrics,
        wal::{
            checkpoint::Checkpoint,
            log::Log,
            snapshot::{CurrentSnapshot, PinnedSnapshots},
        },
    },
};

/// A commit that takes longer runs on the writer's thread next time.
const FAST_COMMIT: Duration = Duration::from_millis(1);
/// The only writer of a store.
#[derive(Debug)]
pub(crate) struct Writer {
    rows: Rows,
    checkpoints: Checkpoints<Checkpoint>,
    /// Wakes the writer's thread to complete a checkpoint; none if there is no such thread.
    inbox: Option<Arc<Inbox<Writer>>>,
    commits: CommitIds,
    /// The last payment in the search index.
    search_cursor: u128,
    /// Number of batches in the last commit.
    last_group: usize,
    /// Duration of the last commit.
    last_took: Duration,
}

/// The rows in the database and, since the last checkpoint, in the log and in the memtables.
#[derive(Debug)]
struct Rows {
    database: Arc<Database>,
    log: Log,
    snapshots: PinnedSnapshots,
    newest: Arc<CurrentSnapshot>,
    health: Arc<Health>,
    metrics: CommitMetrics,
}

/// The parts from which a writer is created.
pub(crate) struct Parts {
    pub(crate) database: Database,
    pub(crate) log: Log,
    pub(crate) newest: Arc<CurrentSnapshot>,
    /// The last payment in the search index.
    pub(crate) search_cursor: u128,
    pub(crate) damages: DamagedRows,
}

impl Writer {
    /// Opens the store for writing. With an inbox, checkpoints run concurrently with commits and wake the thread of the
    /// inbox.
    ///
    /// # Errors
    /// Those of the disk.
    pub(super) fn new(parts: Parts, inbox: Option<Arc<Inbox<Self>>>) -> Result<Self, Fault> {
        let rows = Rows {
            database: Arc::new(parts.database),
            log: parts.log,
            snapshots: PinnedSnapshots::of(parts.newest.get()?),
            newest: parts.newest,
            health: Arc::default(),
            metrics: CommitMetrics::of(parts.damages),
        };
        Ok(Self {
            rows,
            checkpoints: Checkpoints::none(),
            inbox,
            commits: CommitIds::default(),
            search_cursor: parts.search_cursor,
            last_group: 0,
            last_took: Duration::MAX,
        })
    }

    pub(super) fn health(&self) -> Arc<Health> {
        Arc::clone(&self.rows.health)
    }

    pub(super) fn metrics(&self) -> CommitMetrics {
        self.rows.metrics.clone()
    }

    fn close_log(&mut self) -> Result<(), Fault> {
        self.checkpoints.finish(&mut self.rows, |rows| !rows.log.is_empty())?;
        self.rows.log.installed();
        self.rows.log.clear()
    }

    fn fail(&self, fault: &Fault) {
        self.rows.metrics.failed();
        self.rows.health.fail(fault.to_string(), matches!(fault, Fault::Full(_)));
    }

    fn transact(&mut self, batches: Vec<Prepared>) -> Result<Vec<Result<(), CommitError>>, Fault> {
        // The runtime's clock if there is one, so that a simulation controls it; otherwise the system's.
        let begun = Instant::now();
        let count = batches.len();
        let (next, changes) = (self.rows.snapshots.newest().next(), self.rows.log.begin());
        let tables = Transaction::of(&next, &changes, self.rows.snapshots.horizon());
        let mut group = Group::of(tables, &mut self.commits, self.search_cursor);
        let outcomes = batches.into_iter().map(|batch| group.apply(batch)).collect::<Result<Vec<_>, Fault>>()?;
        let finished = group.finish()?;
        if changes.is_empty() {
            self.rows.log.drop_empty(changes);
        } else {
            self.rows.log.append(changes)?;
            self.rows.newest.publish(next.clone());
            self.rows.snapshots.advance(next);
            self.search_cursor = finished.search_cursor;
        }
        (self.last_group, self.last_took) = (count, begun.elapsed());
        self.rows.metrics.committed(count, finished.applied, self.last_took);
        assert_eq!(outcomes.len(), count, "each batch has an outcome");
        // A rejection, too, is returned only now: it may depend on another batch of the group, which is durable only
        // now.
        Ok(outcomes)
    }
}

impl Segments for Rows {
    type Checkpoint = Checkpoint;

    fn is_filled(&self, quarters: u64) -> bool {
        self.log.is_filled(quarters)
    }

    fn seal(&mut self) -> Checkpoint {
        let immutable = self.snapshots.seal_memtable();
        self.newest.publish(immutable.clone());
        Checkpoint {
            database: Arc::clone(&self.database),
            epoch: immutable.share_epoch(),
            begin: self.log.rotate(),
            metrics: self.metrics.clone(),
            health: Arc::clone(&self.health),
        }
    }

    fn install(&mut self) -> Result<(), Fault> {
        self.log.installed();
        self.newest.publish(self.snapshots.install_checkpoint(&self.database)?.clone());
        Ok(())
    }

    fn blocked(&self) {
        self.metrics.blocked();
    }
}

impl Write for Writer {
    type Batch = Prepared;
    type Outcome = Result<(), CommitError>;

    fn commit(&mut self, batches: Vec<Prepared>) -> Vec<Result<(), CommitError>> {
        let count = batches.len();
        let _watch = Watch(Arc::clone(&self.rows.health));
        if self.rows.health.failure().is_none() {
            match self.transact(batches) {
                Ok(outcomes) => return outcomes,
                Err(fault) => {
                    // If a checkpoint failed before, its error explains more than the error of this commit.
                    let first = self.checkpoints.failure();
                    self.fail(&first.unwrap_or(fault));
                }
            }
        }
        (0..count).map(|_| Err(self.rows.health.unknown())).collect()
    }

    /// Commits on the caller's thread if the last commit had one batch and was fast. `block_in_place` moves the
    /// runtime's other tasks to another thread during the sync.
    fn commit_here(&mut self, batch: Prepared) -> Result<Result<(), CommitError>, Prepared> {
        // Due checkpoint work is left to the writer's thread, after the next commit.
        if self.last_group != 1 || self.last_took >= FAST_COMMIT || self.checkpoints.is_due(&self.rows) {
            return Err(batch);
        }
        let mut outcomes = tokio::task::block_in_place(|| self.commit(vec![batch]));
        Ok(outcomes.pop().expect("each batch has an outcome"))
    }

    fn tend(&mut self) {
        let _watch = Watch(Arc::clone(&self.rows.health));
        if self.rows.health.failure().is_some() {
            return;
        }
        let wake = self.inbox.clone().map(|inbox| move || inbox.wake());
        if let Err(fault) = self.checkpoints.tend(&mut self.rows, wake) {
            self.fail(&fault);
        }
    }

    /// Moves all rows into the database, so that the next start replays nothing, and waits for the checkpoint thread.
    fn finish(mut self) {
        let _watch = Watch(Arc::clone(&self.rows.health));
        if self.rows.health.failure().is_some() {
            // This may fail, too; the store has failed already.
            let _ = self.checkpoints.failure();
        } else if let Err(fault) = self.close_log() {
            tracing::warn!(%fault, "write-ahead log not checkpointed: the next start replays it");
        }
    }
}

impl Job for Checkpoint {
    type Error = Fault;

    fn run(&self) -> Result<(), Fault> {
        let _watch = Watch(Arc::clone(&self.health));
        self.make()
    }

    fn thread_died() -> Fault {
        Fault::Disk("the checkpoint thread died".to_owned())
    }
}
