//! Timers and background tasks that stop with their owner.

use std::{future::Future, panic::AssertUnwindSafe, time::Duration};

use futures_util::FutureExt;
use ractor::{ActorRef, Message};
use tokio::task::JoinHandle;

/// Delay before a crashed task is restarted.
const AFTER_CRASH: Duration = Duration::from_secs(1);

/// Sends one message later, unless dropped before. ractor's own timers live until due, even without their owner.
pub(crate) struct Timer {
    _task: Task,
}

impl Timer {
    pub(crate) fn send<M: Message>(to: &ActorRef<M>, after: Duration, message: M) -> Self {
        let to = to.clone();
        let task = Task::spawn(async move {
            tokio::time::sleep(after).await;
            // A stopped receiver needs no message.
            let _ = to.cast(message);
        });
        Self { _task: task }
    }
}

/// A task that ends when it is dropped.
pub(crate) struct Task(JoinHandle<()>);

impl Task {
    pub(crate) fn spawn(work: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(work))
    }

    /// Spawns a task that is restarted after a delay whenever it panics. `begin` receives the number of earlier starts.
    pub(crate) fn persistent<W>(mut begin: impl FnMut(u32) -> W + Send + 'static) -> Self
    where
        W: Future<Output = ()> + Send + 'static,
    {
        Self::spawn(async move {
            for begun in 0.. {
                if AssertUnwindSafe(begin(begun)).catch_unwind().await.is_ok() {
                    return;
                }
                tracing::error!(begun, "background task of an actor crashed, restarting");
                tokio::time::sleep(AFTER_CRASH).await;
            }
        })
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}
