//! The store as it is after its last commit, for everybody who asks before the next.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use crate::{fault::Fault, tables::Epoch};

/// The store as one commit left it. Later commits change nothing of it, as long as it is held.
#[derive(Clone)]
pub(crate) struct Snapshot {
    epoch: Arc<Epoch>,
    /// The number of the commit, shared by all who hold its snapshot.
    commit: Arc<u64>,
}

impl Snapshot {
    /// Begins with what a checkpoint left.
    pub(crate) fn of(epoch: Epoch) -> Self {
        Self { epoch: Arc::new(epoch), commit: Arc::new(0) }
    }

    /// Returns the one that the next commit leaves.
    pub(crate) fn next(&self) -> Self {
        Self { epoch: Arc::clone(&self.epoch), commit: Arc::new(*self.commit + 1) }
    }

    pub(crate) fn epoch(&self) -> &Epoch {
        &self.epoch
    }

    pub(crate) fn commit(&self) -> u64 {
        *self.commit
    }
}

/// The snapshots of an epoch that somebody may still read, and nobody else can begin to but the newest.
#[derive(Debug)]
pub(crate) struct Held {
    newest: Snapshot,
    /// The commits before, oldest first.
    before: VecDeque<Arc<u64>>,
}

impl Held {
    /// Begins with the first of an epoch.
    pub(crate) const fn of(newest: Snapshot) -> Self {
        Self { newest, before: VecDeque::new() }
    }

    /// Returns the newest.
    pub(crate) const fn newest(&self) -> &Snapshot {
        &self.newest
    }

    /// Takes a newer one, which is published already.
    pub(crate) fn follow(&mut self, newest: Snapshot) {
        self.before.push_back(std::mem::replace(&mut self.newest, newest).commit);
        while self.before.pop_front_if(|commit| Arc::strong_count(commit) == 1).is_some() {}
    }

    /// Returns the oldest commit that somebody may read.
    pub(crate) fn horizon(&self) -> u64 {
        self.before.front().map_or_else(|| self.newest.commit(), |commit| **commit)
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
