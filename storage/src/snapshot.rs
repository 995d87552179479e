//! The store as it is after its last commit, for everybody who asks before the next.

use std::sync::{Arc, Mutex, PoisonError};

use crate::{fault::Fault, tables::Epoch};

/// The store as one commit left it. Later commits change nothing of it.
#[derive(Clone)]
pub(crate) struct Snapshot {
    epoch: Arc<Epoch>,
    commit: u64,
}

impl Snapshot {
    /// Begins with what a checkpoint left.
    pub(crate) fn of(epoch: Epoch) -> Self {
        Self { epoch: Arc::new(epoch), commit: 0 }
    }

    /// Returns the one that the next commit leaves.
    pub(crate) fn next(&self) -> Self {
        Self { epoch: Arc::clone(&self.epoch), commit: self.commit + 1 }
    }

    pub(crate) fn epoch(&self) -> &Epoch {
        &self.epoch
    }

    pub(crate) const fn commit(&self) -> u64 {
        self.commit
    }
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot").field("commit", &self.commit).finish_non_exhaustive()
    }
}

/// Where the newest snapshot is found; none once the store is closed.
#[derive(Debug)]
pub(crate) struct Newest(Mutex<Option<Snapshot>>);

impl Newest {
    /// Starts with what is stored.
    pub(crate) const fn of(snapshot: Snapshot) -> Self {
        Self(Mutex::new(Some(snapshot)))
    }

    /// Returns the snapshot of the last commit.
    pub(crate) fn get(&self) -> Result<Snapshot, Fault> {
        let newest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        newest.clone().ok_or_else(|| Fault::Disk("it is closed".to_owned()))
    }

    /// Shows a commit that is durable. To be called before anybody is told so.
    pub(crate) fn publish(&self, snapshot: Snapshot) {
        let mut newest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if newest.is_some() {
            *newest = Some(snapshot);
        }
    }

    /// Shows nothing any more.
    pub(crate) fn close(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
