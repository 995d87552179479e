//! Whether a store can still write, and why not.

use std::sync::{Arc, OnceLock};

use tokio::sync::Notify;

use crate::batch::CommitError;

/// Whether the disk has failed. Once it has, nothing is written any more: only reopening tells what is stored.
#[derive(Debug, Default)]
pub(crate) struct Health {
    failure: OnceLock<(String, bool)>,
    failing: Notify,
}

impl Health {
    /// Returns why nothing can be written any more.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.failure.get().map(|(why, _)| why.as_str())
    }

    /// Says whether it is for want of room.
    pub(crate) fn is_full(&self) -> bool {
        self.failure.get().is_some_and(|(_, is_full)| *is_full)
    }

    /// Waits until nothing can be written any more; returns why.
    pub(crate) async fn failed(&self) -> String {
        loop {
            let failing = self.failing.notified();
            if let Some(why) = self.failure() {
                return why.to_owned();
            }
            failing.await;
        }
    }

    /// Notes that it failed.
    pub(crate) fn fail(&self, why: String, is_full: bool) {
        if self.failure.set((why, is_full)).is_ok() {
            tracing::error!(why = self.failure(), "store failed: no writes until it is reopened");
        }
        self.failing.notify_waiters();
    }

    /// Returns what a commit is told whose outcome nobody knows.
    pub(crate) fn unknown(&self) -> CommitError {
        CommitError::Unknown(self.failure().unwrap_or("the committer is gone").to_owned())
    }
}

/// Notices that a thread that writes dies of a panic.
pub(crate) struct Watch(pub(crate) Arc<Health>);

impl Drop for Watch {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail("a thread that writes panicked".to_owned(), false);
        }
    }
}
