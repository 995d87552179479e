//! Work and messages to come, which do not outlive who waits for them.

use std::{future::Future, time::Duration};

use ractor::{ActorRef, Message};
use tokio::task::JoinHandle;

/// Sends one message later, unless dropped before. ractor's own timers live on until due, whoever is gone by then.
pub(crate) struct Timer {
    _task: Task,
}

impl Timer {
    pub(crate) fn send<M: Message>(to: &ActorRef<M>, after: Duration, message: M) -> Self {
        let to = to.clone();
        let task = Task::spawn(async move {
            tokio::time::sleep(after).await;
            // Who stopped meanwhile needs no telling.
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
}

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}
