//! A message to come, which does not outlive who waits for it.

use std::time::Duration;

use ractor::{ActorRef, Message};
use tokio::task::JoinHandle;

/// Sends one message later, unless dropped before. ractor's own timers live on until due, whoever is gone by then.
pub(crate) struct Timer(JoinHandle<()>);

impl Timer {
    pub(crate) fn send<M: Message>(to: &ActorRef<M>, after: Duration, message: M) -> Self {
        let to = to.clone();
        Self(tokio::spawn(async move {
            tokio::time::sleep(after).await;
            // Who stopped meanwhile needs no telling.
            let _ = to.cast(message);
        }))
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.0.abort();
    }
}
