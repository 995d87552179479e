//! The store between the actors and the real redb: commits have a latency, are sometimes refused because the queue is full,
//! and every watcher is notified.

use std::sync::{Arc, Mutex};

use engine::time::Timestamp;
use futures_util::future::BoxFuture;
use storage::{Batch, CommitError, CommitId, EmbeddedStore, Read, ReadError, Resolution, Store, Wrapped};

use tokio::sync::oneshot;

use crate::{options::Fault, simulation::Seam, sync::lock, trace::Source};

/// A real store in a simulation. Commits are grouped, as on a real disk: while one group is being synced the
/// next one is collected.
pub(crate) struct SimStore {
    seam: Seam,
    inner: Arc<EmbeddedStore>,
    queue: Arc<Mutex<Queue>>,
}

#[derive(Default)]
struct Queue {
    waiting: Vec<Waiting>,
    is_writing: bool,
}

struct Waiting {
    batch: Batch,
    answer: oneshot::Sender<Result<(), CommitError>>,
}

impl SimStore {
    pub(crate) fn of(seam: Seam, inner: Arc<EmbeddedStore>) -> Self {
        Self { seam, inner, queue: Arc::default() }
    }

    async fn commit_in_time(&self, batch: Batch) -> Result<(), CommitError> {
        let sim = &self.seam.sim;
        self.seam.alive().await;
        if sim.is_store_busy() {
            sim.fault(Source::Disk, Fault::StoreBusy.as_str(), 0, || "the store's queue is full: refused".to_owned());
            return Err(CommitError::Overloaded);
        }
        let (answer, answered) = oneshot::channel();
        let begins = {
            let mut queue = lock(&self.queue);
            queue.waiting.push(Waiting { batch, answer });
            !std::mem::replace(&mut queue.is_writing, true)
        };
        if begins {
            tokio::spawn(write(self.seam.clone(), Arc::clone(&self.inner), Arc::clone(&self.queue)));
        }
        // There is no response when the process is killed.
        match answered.await {
            Ok(outcome) => outcome,
            Err(_) => std::future::pending().await,
        }
    }
}

/// Writes groups until no commit waits.
async fn write(seam: Seam, inner: Arc<EmbeddedStore>, queue: Arc<Mutex<Queue>>) {
    let sim = &seam.sim;
    loop {
        let (before_ms, after_ms) = sim.commit_times();
        sim.sleep(before_ms).await;
        seam.alive().await;
        let group = {
            let mut queue = lock(&queue);
            if queue.waiting.is_empty() {
                queue.is_writing = false;
                return;
            }
            std::mem::take(&mut queue.waiting)
        };
        let outcomes = inner.commit_group(group.iter().map(|waiting| waiting.batch.clone()).collect()).await;
        for (waiting, outcome) in group.iter().zip(&outcomes) {
            sim.commit_ended(&waiting.batch, outcome);
        }
        sim.sleep(after_ms).await;
        // Power was lost during the commit: no caller is left for its outcome.
        seam.alive().await;
        if outcomes.iter().any(|outcome| matches!(outcome, Err(CommitError::Unknown(_)))) {
            sim.commit_fails(&seam.process);
        }
        for (waiting, outcome) in group.into_iter().zip(outcomes) {
            let _ = waiting.answer.send(outcome);
        }
    }
}

impl Wrapped for SimStore {
    type Inner = EmbeddedStore;

    fn inner(&self) -> &EmbeddedStore {
        &self.inner
    }

    fn around<'a, T, R>(&'a self, name: &'static str, read: R) -> Read<'a, T>
    where
        T: Send + 'a,
        R: Fn() -> Read<'a, T> + Send + Sync + 'a,
    {
        Box::pin(async move {
            self.seam.alive().await;
            let answer = read().await;
            match &answer {
                Err(ReadError::Damaged { .. }) => self.seam.sim.mark("a damaged row is read"),
                Err(ReadError::Failed(_) | ReadError::Unavailable(_)) => {
                    self.seam.sim.read_fails(&self.seam.process, name);
                }
                Ok(_) => {}
            }
            // No caller continues after the process was killed during the read.
            self.seam.alive().await;
            answer
        })
    }
}

impl Store for SimStore {
    fn commit(&self, batch: Batch) -> BoxFuture<'_, Result<(), CommitError>> {
        Box::pin(self.commit_in_time(batch))
    }

    fn resolve(&self, id: CommitId) -> BoxFuture<'_, Result<Resolution, CommitError>> {
        Box::pin(async move {
            self.seam.alive().await;
            let resolved = self.inner.resolve(id).await;
            self.seam.alive().await;
            resolved
        })
    }

    fn index_search(&self, now: Timestamp, max: usize) -> BoxFuture<'_, Result<usize, CommitError>> {
        Box::pin(async move {
            self.seam.alive().await;
            let indexed = self.inner.index_search(now, max).await;
            self.seam.alive().await;
            indexed
        })
    }
}
