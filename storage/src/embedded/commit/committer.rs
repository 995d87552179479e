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
    /// On a writer thread of their own, but for an uncontended commit to a quick disk, which runs on the thread of its caller.
    /// At most `queue` batches wait; more are refused with [`CommitError::Overloaded`].
    Thread {
        /// Batches that may wait.
        queue: usize,
    },
    /// In the caller's task, one batch at a time: what a simulation needs to be the same every time.
    Inline,
}

impl Default for CommitMode {
    fn default() -> Self {
        Self::Thread { queue: 10_000 }
    }
}

/// The way to the writer.
#[derive(Debug)]
pub(crate) struct Committer {
    health: Arc<Health>,
    metrics: CommitMetrics,
    route: Route,
}

#[derive(Debug)]
enum Route {
    Thread(Queue<Writer>),
    /// None once it is closed.
    Inline(Box<Mutex<Option<Writer>>>),
}

impl Committer {
    /// Starts the writer.
    ///
    /// # Errors
    /// The operating system's, where it has no thread to give; those of the disk.
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

    /// Makes a group of batches durable, each whole or refused; returns the outcomes in its order.
    pub(crate) async fn commit_group(&self, group: Vec<Prepared>) -> Vec<Result<(), CommitError>> {
        match &self.route {
            Route::Inline(writer) => self.commit_inline(writer, group),
            Route::Thread(_) => futures_util::future::join_all(group.into_iter().map(|batch| self.commit(batch))).await,
        }
    }

    /// Makes a batch durable or refuses it.
    pub(crate) async fn commit(&self, batch: Prepared) -> Result<(), CommitError> {
        match &self.route {
            Route::Inline(writer) => self.commit_inline(writer, vec![batch]).pop().expect("each batch has an outcome"),
            Route::Thread(queue) => {
                // Only where the runtime has other threads to go on with.
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
            // After an orderly close nothing was written; after a failure nobody knows.
            Refused::Closed if self.health.failure().is_none() => CommitError::Overloaded,
            Refused::Closed | Refused::Lost => self.health.unknown(),
        }
    }

    /// Commits what waits, then stops the writer. Later commits are refused with [`CommitError::Overloaded`].
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

    /// Returns how many batches wait for the writer.
    pub(crate) fn waiting(&self) -> usize {
        match &self.route {
            Route::Thread(queue) => queue.waiting(),
            Route::Inline(_) => 0,
        }
    }
}
