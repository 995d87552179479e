//! The signal that stops the process after a fatal error.

use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

/// The signal that stops the process after a fatal error.
#[derive(Debug, Default)]
pub(crate) struct Fatal {
    why: Mutex<Option<String>>,
    raised: Notify,
}

impl Fatal {
    pub(crate) fn raise(&self, why: String) {
        let mut first = self.why.lock().unwrap_or_else(PoisonError::into_inner);
        // Calls in flight fail for the same reason; only the first is logged.
        if first.is_none() {
            tracing::error!(%why, "engine shuts down: {why}");
            *first = Some(why);
        }
        drop(first);
        self.raised.notify_waiters();
    }

    /// Waits for a fatal error and returns its message; supports any number of waiters.
    pub(crate) async fn raised(&self) -> String {
        loop {
            let raised = self.raised.notified();
            let seen = self.why.lock().unwrap_or_else(PoisonError::into_inner).clone();
            match seen {
                Some(why) => return why,
                None => raised.await,
            }
        }
    }
}
