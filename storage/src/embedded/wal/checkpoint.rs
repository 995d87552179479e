//! Checkpoints: what a full log holds is written into the database, beside the commits that follow.

use std::sync::{
    Arc,
    mpsc::{Receiver, TryRecvError, channel},
};

use redb::Database;
use tokio::time::Instant;

use crate::embedded::{
    fault::Fault,
    health::{Health, Watch},
    metrics::CommitMetrics,
    tables::{Epoch, begin_write},
    wal::log::{self, Position},
};

/// What is to be written.
#[derive(Clone)]
pub(crate) struct Checkpoint {
    /// Where to.
    pub(crate) database: Arc<Database>,
    /// What is frozen in it. Not a snapshot: a commit that somebody holds keeps every version that came since.
    pub(crate) epoch: Arc<Epoch>,
    /// Where the log begins then.
    pub(crate) turn: Position,
    /// Where it is noted.
    pub(crate) metrics: CommitMetrics,
}

impl Checkpoint {
    /// Writes it, durably.
    ///
    /// # Errors
    /// Those of the disk; the log still holds everything, and nothing more may be written.
    pub(crate) fn make(&self) -> Result<(), Fault> {
        let begun_at = Instant::now();
        let transaction = begin_write(&self.database)?;
        self.epoch.write_frozen(&transaction)?;
        log::begin_at(transaction, self.turn)?;
        self.metrics.checkpointed(begun_at.elapsed());
        Ok(())
    }
}

/// A checkpoint that is being made.
pub(crate) enum Underway {
    /// By a thread of its own, which tells how it went.
    Beside(Receiver<Result<(), Fault>>),
    /// By the writer, when it has waited long enough.
    Due(Checkpoint),
}

impl Underway {
    /// Begins one beside the commits. `wake` is called when its outcome can be asked for.
    pub(crate) fn beside(checkpoint: Checkpoint, health: Arc<Health>, wake: impl FnOnce() + Send + 'static) -> Self {
        let (sender, outcome) = channel();
        let theirs = checkpoint.clone();
        let work = move || {
            let _watch = Watch(health);
            let outcome = theirs.make();
            // Who is told may close the store, and open it anew.
            drop(theirs);
            let _ = sender.send(outcome);
            wake();
        };
        match std::thread::Builder::new().name("checkpoint".to_owned()).spawn(work) {
            Ok(_) => Self::Beside(outcome),
            Err(error) => {
                tracing::warn!(%error, "cannot start a thread for the checkpoint: commits wait until it ends");
                Self::Due(checkpoint)
            }
        }
    }

    /// Returns how many quarters of a full log come meanwhile, before commits wait for it. One that the writer makes itself
    /// comes a little later than it could, as one beside it would.
    pub(crate) const fn patience(&self) -> u64 {
        match self {
            Self::Beside(_) => 8,
            Self::Due(_) => 1,
        }
    }

    /// Returns how it went, if it is over.
    pub(crate) fn outcome(&self) -> Option<Result<(), Fault>> {
        match self {
            Self::Beside(outcome) => match outcome.try_recv() {
                Ok(outcome) => Some(outcome),
                Err(TryRecvError::Empty) => None,
                Err(TryRecvError::Disconnected) => Some(Err(gone())),
            },
            Self::Due(_) => None,
        }
    }

    /// Waits for its end, or makes it; returns how it went.
    pub(crate) fn wait(&self) -> Result<(), Fault> {
        match self {
            Self::Beside(outcome) => outcome.recv().unwrap_or_else(|_| Err(gone())),
            Self::Due(checkpoint) => checkpoint.make(),
        }
    }

    /// Waits for the end of one that is not the writer's, and returns why it failed.
    pub(crate) fn failure(self) -> Option<Fault> {
        match self {
            Self::Beside(_) => self.wait().err(),
            Self::Due(_) => None,
        }
    }
}

fn gone() -> Fault {
    Fault::Disk("the checkpoint's thread is gone".to_owned())
}

impl std::fmt::Debug for Underway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Beside(_) => "Beside",
            Self::Due(_) => "Due",
        })
    }
}
