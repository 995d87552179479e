//! Where commits run: on a writer thread and its queue, or in the caller's task.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::runtime::Handle;

use super::{
    queue::{Inbox, Queue, Refused, Write},
    writer::{Parts, Writer},
};
use crate::{
    batch::CommitError,
    embedded::{commit::prepared::Prepared, health::Health, metrics::CommitMetrics},
};

/// Where commits run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitMode {
    /// On a writer thread. An uncontended commit to a fast disk runs on the caller's thread. At most `queue` batches
    /// wait; more are rejected with [`CommitError::Overloaded`].
    Thread {
        /// Maximum number of waiting batches.
        queue: usize,
    },
    /// In the caller's task, one batch at a time. Simulations need this to be deterministic.
    Inline,
}

impl Default for CommitMode {
    fn default() -> Self {
        Self::Thread { queue: 10_000 }
    }
}

/// A handle to the writer.
#[derive(Debug)]
pub(crate) struct Committer {
    health: Arc<Health>,
    metrics: CommitMetrics,
    route: Route,
}

#[derive(Debug)]
enum Route {
    Thread(Queue<Writer>),
    /// `None` once the store is closed.
    Inline(Box<Mutex<Option<Writer>>>),
}

impl Committer {
    /// Starts the writer.
    ///
    /// # Errors
    /// The operating system's, if no thread can be created; those of the disk.
    pub(crate) fn start(parts: Parts, mode: CommitMode) -> std::io::Result<Self> {
        let new = |inbox| Writer::new(parts, inbox).map_err(std::io::Error::other);
        let (health, metrics, route);
        match mode {
            CommitMode::Inline => {
                let writer = new(None)?;
                (health, metrics) = (writer.health(), writer.metrics());
                route = Route::Inline(Box::new(Mutex::new(Some(writer))));
            }
            CommitMode::Thread { queue } => {
                let inbox = Inbox::new();
                let writer = new(Some(Arc::clone(&inbox)))?;
                (health, metrics) = (writer.health(), writer.metrics());
                route = Route::Thread(Queue::start(inbox, writer, queue)?);
            }
        }
        Ok(Self { health, metrics, route })
    }

    /// Commits a group of batches, each as a whole or not at all; returns the outcomes in the same order.
    pub(crate) async fn commit_group(&self, group: Vec<Prepared>) -> Vec<Result<(), CommitError>> {
        match &self.route {
            Route::Inline(writer) => self.commit_inline(writer, group),
            Route::Thread(_) => futures_util::future::join_all(group.into_iter().map(|batch| self.commit(batch))).await,
        }
    }

    /// Commits or rejects a batch.
    pub(crate) async fn commit(&self, batch: Prepared) -> Result<(), CommitError> {
        match &self.route {
            Route::Inline(writer) => self.commit_inline(writer, vec![batch]).pop().expect("each batch has an outcome"),
            Route::Thread(queue) => {
                // Only on a runtime with other threads, which can run its tasks meanwhile.
                let may_run_here = Handle::try_current().is_ok_and(|runtime| runtime.metrics().num_workers() > 1);
                queue.commit(batch, may_run_here).await.unwrap_or_else(|refused| Err(self.refusal(refused)))
            }
        }
    }

    fn commit_inline(&self, writer: &Mutex<Option<Writer>>, group: Vec<Prepared>) -> Vec<Result<(), CommitError>> {
        match writer.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            Some(writer) => {
                let outcomes = writer.commit(group);
                writer.tend();
                outcomes
            }
            None => group.iter().map(|_| Err(self.refusal(Refused::Closed))).collect(),
        }
    }

    fn refusal(&self, refused: Refused) -> CommitError {
        match refused {
            Refused::Full => CommitError::Overloaded,
            // After a regular close nothing was written; after a failure the outcome is unknown.
            Refused::Closed if self.health.failure().is_none() => CommitError::Overloaded,
            Refused::Closed | Refused::Lost => self.health.unknown(),
        }
    }

    /// Commits the waiting batches, then stops the writer. Later commits are rejected with [`CommitError::Overloaded`].
    pub(crate) async fn close(&self) {
        match &self.route {
            Route::Inline(writer) => {
                let writer = writer.lock().unwrap_or_else(PoisonError::into_inner).take();
                if let Some(writer) = writer {
                    writer.finish();
                }
            }
            Route::Thread(queue) => queue.close().await,
        }
    }

    pub(crate) fn health(&self) -> &Health {
        &self.health
    }

    pub(crate) const fn metrics(&self) -> &CommitMetrics {
        &self.metrics
    }

    /// Returns the number of batches that wait for the writer.
    pub(crate) fn waiting(&self) -> usize {
        match &self.route {
            Route::Thread(queue) => queue.waiting(),
            Route::Inline(_) => 0,
        }
    }
}
