//! The store as it is after its last commit, for everybody who asks before the next.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use redb::{Database, ReadTransaction, ReadableDatabase, WriteTransaction};

use crate::{
    embedded::{
        damage::Damages,
        fault::Fault,
        tables::{self, DayKey, DeliveryKey, ListKey, OutboxKey, with_tables},
        wal::view::{Layers, View},
    },
    record::{checked::Text, summary::SUMMARY_LEN},
};

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

    /// Returns the same commit in another form of its epoch.
    fn in_epoch(&self, epoch: Epoch) -> Self {
        Self { epoch: Arc::new(epoch), commit: Arc::clone(&self.commit) }
    }

    pub(crate) fn epoch(&self) -> &Epoch {
        &self.epoch
    }

    /// Returns its epoch, to be held without the commit.
    pub(crate) fn share_epoch(&self) -> Arc<Epoch> {
        Arc::clone(&self.epoch)
    }

    pub(crate) fn commit(&self) -> u64 {
        *self.commit
    }
}

/// The snapshots that somebody may still read, and nobody else can begin to but the newest.
#[derive(Debug)]
pub(crate) struct PinnedSnapshots {
    newest: Snapshot,
    /// The commits before, oldest first.
    before: VecDeque<Arc<u64>>,
}

impl PinnedSnapshots {
    /// Begins with the first.
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

    /// Freezes the newest, to be published. Who reads an earlier commit reads nothing of what is written from now on.
    pub(crate) fn seal_memtable(&mut self) -> &Snapshot {
        *self = Self::of(self.newest.in_epoch(self.newest.epoch.seal_memtable()));
        &self.newest
    }

    /// Takes the newest over what a checkpoint has stored of it, to be published.
    pub(crate) fn install_checkpoint(&mut self, database: &Database) -> Result<&Snapshot, Fault> {
        self.newest = self.newest.in_epoch(self.newest.epoch.install_checkpoint(database)?);
        Ok(&self.newest)
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
pub(crate) struct CurrentSnapshot(Mutex<Option<Snapshot>>);

impl CurrentSnapshot {
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

macro_rules! epoch {
    ($($(#[$doc:meta])* $constant:ident, $field:ident: $key:ty => $value:ty;)+) => {
        /// The store since one checkpoint: every table as that left it, and what was committed to it since.
        pub(crate) struct Epoch {
            $($field: Layers<$key, $value>,)+
        }

        impl Epoch {
            /// Begins with what the database holds.
            pub(crate) fn begin(database: &Database, damages: &Damages) -> Result<Self, Fault> {
                Self::of(&database.begin_read()?, damages)
            }

            /// Shows what a transaction reads.
            pub(crate) fn of(transaction: &ReadTransaction, damages: &Damages) -> Result<Self, Fault> {
                Ok(Self {
                    $($field: Layers::over(transaction.open_table(tables::$constant)?, stringify!($field), damages.clone()),)+
                })
            }

            /// Goes on so that what was committed until now can be written into the database.
            pub(crate) fn seal_memtable(&self) -> Self {
                Self { $($field: self.$field.seal_memtable(),)+ }
            }

            /// Writes what was committed before it was sealed into the database.
            pub(crate) fn write_immutable(&self, transaction: &WriteTransaction) -> Result<(), Fault> {
                $(self.$field.write_immutable(transaction, tables::$constant)?;)+
                Ok(())
            }

            /// Goes on with what the database holds since, in which the immutable memtables are.
            pub(crate) fn install_checkpoint(&self, database: &Database) -> Result<Self, Fault> {
                let transaction = database.begin_read()?;
                Ok(Self { $($field: self.$field.install_checkpoint(transaction.open_table(tables::$constant)?),)+ })
            }
        }

        #[cfg(test)]
        impl Epoch {
            /// Returns how many rows are kept that were changed since the checkpoint, removed ones too.
            pub(crate) fn changed_rows(&self) -> usize {
                0 $(+ self.$field.changed_rows())+
            }
        }

        /// The store as one commit left it.
        impl Snapshot {
            $(
                /// Returns the table of this name.
                pub(crate) fn $field(&self) -> View<'_, $key, $value> {
                    self.epoch().$field.view(self.commit())
                }
            )+

            /// Shows every row in the form of the database, damaged ones too, table by table, in the order of their
            /// keys.
            pub(crate) fn each_row(
                &self,
                see: &mut impl FnMut(&'static str, &[u8], &[u8]) -> Result<(), Fault>,
            ) -> Result<(), Fault> {
                $(self.$field().each_sealed(&mut |key, sealed| see(stringify!($field), key, sealed))?;)+
                Ok(())
            }

            /// Reads every row; shows the table and the key of those that are damaged.
            pub(crate) fn each_damaged(
                &self,
                see: &mut impl FnMut(&'static str, String),
            ) -> Result<(), Fault> {
                $(self.$field().each_damaged(&mut |key| see(stringify!($field), key))?;)+
                Ok(())
            }

            /// Returns how many rows each table has.
            pub(crate) fn lengths(&self) -> Result<Vec<(&'static str, u64)>, Fault> {
                Ok(vec![$((stringify!($field), self.$field().len()?),)+])
            }
        }
    };
}

with_tables!(epoch);

#[cfg(test)]
mod tests;
