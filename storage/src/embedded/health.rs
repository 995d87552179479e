//! Whether a store can still write, and why not.

use std::sync::{Arc, OnceLock};

use tokio::sync::Notify;

use crate::batch::CommitError;

/// Whether the disk has failed. After a failure nothing is written: only reopening the store shows what is stored.
#[derive(Debug, Default)]
pub(crate) struct Health {
    failure: OnceLock<(String, bool)>,
    failing: Notify,
}

impl Health {
    /// Returns the reason of the failure, if the store has failed.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.failure.get().map(|(why, _)| why.as_str())
    }

    /// Returns whether the disk is full.
    pub(crate) fn is_full(&self) -> bool {
        self.failure.get().is_some_and(|(_, is_full)| *is_full)
    }

    /// Waits for a failure; returns its reason.
    pub(crate) async fn failed(&self) -> String {
        loop {
            let failing = self.failing.notified();
            if let Some(why) = self.failure() {
                return why.to_owned();
            }
            failing.await;
        }
    }

    /// Records a failure.
    pub(crate) fn fail(&self, why: String, is_full: bool) {
        if self.failure.set((why, is_full)).is_ok() {
            tracing::error!(why = self.failure(), "store failed: no writes until it is reopened");
        }
        self.failing.notify_waiters();
    }

    /// Returns the error of a commit whose outcome is unknown.
    pub(crate) fn unknown(&self) -> CommitError {
        CommitError::Unknown(self.failure().unwrap_or("the writer has stopped").to_owned())
    }
}

/// Records a failure if the current thread panics while it writes.
pub(crate) struct Watch(pub(crate) Arc<Health>);

impl Drop for Watch {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail("a writer thread panicked".to_owned(), false);
        }
    }
}
