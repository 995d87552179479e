//! Snapshots: the store as of one commit.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use redb::{Database, ReadTransaction, ReadableDatabase, WriteTransaction};

use crate::{
    embedded::{
        damage::DamagedRows,
        fault::Fault,
        tables::{self, DayKey, DeliveryKey, ListKey, OutboxKey, PendingKey, with_tables},
        wal::view::{Layers, View},
    },
    record::{checked::Text, summary::SUMMARY_LEN},
};

/// The store as of one commit. Later commits do not affect it while it is pinned.
#[derive(Clone)]
pub(crate) struct Snapshot {
    epoch: Arc<Epoch>,
    /// The number of the commit. Each clone of the snapshot pins the commit.
    commit: Arc<u64>,
}

impl Snapshot {
    /// Creates the snapshot of the last checkpoint.
    pub(crate) fn of(epoch: Epoch) -> Self {
        Self { epoch: Arc::new(epoch), commit: Arc::new(0) }
    }

    /// Returns the snapshot of the next commit.
    pub(crate) fn next(&self) -> Self {
        Self { epoch: Arc::clone(&self.epoch), commit: Arc::new(*self.commit + 1) }
    }

    /// Returns the snapshot of the same commit in another epoch.
    fn in_epoch(&self, epoch: Epoch) -> Self {
        Self { epoch: Arc::new(epoch), commit: Arc::clone(&self.commit) }
    }

    pub(crate) fn epoch(&self) -> &Epoch {
        &self.epoch
    }

    /// Returns the epoch without pinning the commit.
    pub(crate) fn share_epoch(&self) -> Arc<Epoch> {
        Arc::clone(&self.epoch)
    }

    pub(crate) fn commit(&self) -> u64 {
        *self.commit
    }
}

/// The pinned snapshots. Only the current one can be pinned again.
#[derive(Debug)]
pub(crate) struct PinnedSnapshots {
    current: Snapshot,
    /// The commits before, oldest first.
    before: VecDeque<Arc<u64>>,
}

impl PinnedSnapshots {
    /// Starts with the first snapshot.
    pub(crate) const fn of(current: Snapshot) -> Self {
        Self { current, before: VecDeque::new() }
    }

    /// Returns the current snapshot.
    pub(crate) const fn current(&self) -> &Snapshot {
        &self.current
    }

    /// Makes a published snapshot the current one.
    pub(crate) fn advance(&mut self, current: Snapshot) {
        self.before.push_back(std::mem::replace(&mut self.current, current).commit);
        while self.before.pop_front_if(|commit| Arc::strong_count(commit) == 1).is_some() {}
    }

    /// Seals the memtables; returns the current snapshot in the new epoch, to be published. Commits from now on do not
    /// change the sealed memtables.
    pub(crate) fn seal_memtable(&mut self) -> &Snapshot {
        *self = Self::of(self.current.in_epoch(self.current.epoch.seal_memtable()));
        &self.current
    }

    /// Installs a checkpoint under the current snapshot; returns the snapshot to publish.
    pub(crate) fn install_checkpoint(&mut self, database: &Database) -> Result<&Snapshot, Fault> {
        self.current = self.current.in_epoch(self.current.epoch.install_checkpoint(database)?);
        Ok(&self.current)
    }

    /// Returns the oldest pinned commit.
    pub(crate) fn horizon(&self) -> u64 {
        self.before.front().map_or_else(|| self.current.commit(), |commit| **commit)
    }
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot").field("commit", &self.commit).finish_non_exhaustive()
    }
}

/// The current snapshot; `None` once the store is closed.
#[derive(Debug)]
pub(crate) struct CurrentSnapshot(Mutex<Option<Snapshot>>);

impl CurrentSnapshot {
    /// Starts with a snapshot.
    pub(crate) const fn of(snapshot: Snapshot) -> Self {
        Self(Mutex::new(Some(snapshot)))
    }

    /// Returns the snapshot of the last commit.
    pub(crate) fn get(&self) -> Result<Snapshot, Fault> {
        let current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        current.clone().ok_or_else(|| Fault::Disk("the store is closed".to_owned()))
    }

    /// Publishes a durable commit. Call this before the commit is acknowledged.
    pub(crate) fn publish(&self, snapshot: Snapshot) {
        let mut current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if current.is_some() {
            *current = Some(snapshot);
        }
    }

    /// Ends all reads.
    pub(crate) fn close(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

macro_rules! epoch {
    ($($(#[$doc:meta])* $constant:ident, $field:ident: $key:ty => $value:ty;)+) => {
        /// The store since one checkpoint: every table as of the checkpoint, and its memtables.
        pub(crate) struct Epoch {
            $($field: Layers<$key, $value>,)+
        }

        impl Epoch {
            /// Starts with the content of a database.
            pub(crate) fn begin(database: &Database, damages: &DamagedRows) -> Result<Self, Fault> {
                Self::of(&database.begin_read()?, damages)
            }

            /// Starts with the content of a read transaction.
            pub(crate) fn of(transaction: &ReadTransaction, damages: &DamagedRows) -> Result<Self, Fault> {
                Ok(Self {
                    $($field: Layers::over(transaction.open_table(tables::$constant)?, stringify!($field), damages.clone()),)+
                })
            }

            /// Returns the epoch after sealing the memtables, which a checkpoint can then write into the database.
            pub(crate) fn seal_memtable(&self) -> Self {
                Self { $($field: self.$field.seal_memtable(),)+ }
            }

            /// Writes the sealed memtables into the database.
            pub(crate) fn write_immutable(&self, transaction: &WriteTransaction) -> Result<(), Fault> {
                $(self.$field.write_immutable(transaction, tables::$constant)?;)+
                Ok(())
            }

            /// Returns the epoch after a checkpoint: based on the new database state, without the sealed memtables.
            pub(crate) fn install_checkpoint(&self, database: &Database) -> Result<Self, Fault> {
                let transaction = database.begin_read()?;
                Ok(Self { $($field: self.$field.install_checkpoint(transaction.open_table(tables::$constant)?),)+ })
            }
        }

        #[cfg(test)]
        impl Epoch {
            /// Returns the number of rows in the memtables, tombstones included.
            pub(crate) fn changed_rows(&self) -> usize {
                0 $(+ self.$field.changed_rows())+
            }
        }

        /// The tables as of one commit.
        impl Snapshot {
            $(
                /// Returns the table of this name.
                pub(crate) fn $field(&self) -> View<'_, $key, $value> {
                    self.epoch().$field.view(self.commit())
                }
            )+

            /// Passes every stored row to `visit`, damaged ones included, table by table, in key order.
            pub(crate) fn each_row(
                &self,
                visit: &mut impl FnMut(&'static str, &[u8], &[u8]) -> Result<(), Fault>,
            ) -> Result<(), Fault> {
                $(self.$field().each_sealed(&mut |key, sealed| visit(stringify!($field), key, sealed))?;)+
                Ok(())
            }

            /// Reads every row; passes table and key of each damaged row to `visit`.
            pub(crate) fn each_damaged(
                &self,
                visit: &mut impl FnMut(&'static str, String),
            ) -> Result<(), Fault> {
                $(self.$field().each_damaged(&mut |key| visit(stringify!($field), key))?;)+
                Ok(())
            }

            /// Returns the number of rows of each table.
            pub(crate) fn lengths(&self) -> Result<Vec<(&'static str, u64)>, Fault> {
                Ok(vec![$((stringify!($field), self.$field().len()?),)+])
            }
        }
    };
}

with_tables!(epoch);

#[cfg(test)]
mod tests;
