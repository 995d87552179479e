//! The write transaction: its tables record every change for the write-ahead log.

use std::{borrow::Borrow, ops::Deref};

use redb::{Key, StorageError, Value};

use crate::{
    embedded::{
        tables::{DayKey, DeliveryKey, ListKey, OutboxKey, PendingKey, with_tables},
        wal::{entry::Changes, memtable::WriteVersion, single, snapshot::Snapshot, view::View},
    },
    record::{checked::Text, summary::SUMMARY_LEN},
};

/// The store as an open write transaction leaves it. It is not visible to readers before the commit is published.
#[derive(Clone, Copy)]
pub(crate) struct Transaction<'c> {
    snapshot: &'c Snapshot,
    changes: &'c Changes,
    horizon: u64,
}

impl<'c> Transaction<'c> {
    /// Creates a transaction that writes to `snapshot`. No reader pins a commit before `horizon`.
    pub(crate) const fn of(snapshot: &'c Snapshot, changes: &'c Changes, horizon: u64) -> Self {
        Self { snapshot, changes, horizon }
    }

    /// Returns the snapshot that is written to.
    pub(crate) const fn snapshot(&self) -> &'c Snapshot {
        self.snapshot
    }
}

/// A table of a write transaction. Reads visit its changes; each change is recorded for the log.
pub(crate) struct Logged<'c, K: Key + 'static, V: Value + 'static> {
    table: View<'c, K, V>,
    name: &'static str,
    transaction: Transaction<'c>,
}

impl<'c, K: Key + 'static, V: Value + 'static> Logged<'c, K, V> {
    /// Wraps a table.
    pub(crate) const fn of(table: View<'c, K, V>, name: &'static str, transaction: Transaction<'c>) -> Self {
        Self { table, name, transaction }
    }

    fn by(&self) -> WriteVersion {
        WriteVersion { commit: self.transaction.snapshot.commit(), horizon: self.transaction.horizon }
    }

    /// Sets a row.
    pub(crate) fn insert<'k, 'v>(&self, key: impl Borrow<K::SelfType<'k>>, value: impl Borrow<V::SelfType<'v>>) {
        let (key, value) = (K::as_bytes(key.borrow()), V::as_bytes(value.borrow()));
        self.transaction.changes.note(self.name, key.as_ref(), Some(value.as_ref()));
        self.table.insert(self.by(), key.as_ref(), value.as_ref());
    }

    /// Removes a row, if it exists.
    pub(crate) fn remove<'k>(&self, key: impl Borrow<K::SelfType<'k>>) -> Result<(), StorageError> {
        let key = K::as_bytes(key.borrow());
        self.transaction.changes.note(self.name, key.as_ref(), None);
        self.table.remove(self.by(), key.as_ref())
    }
}

impl<'c, K: Key + 'static, V: Value + 'static> Deref for Logged<'c, K, V> {
    type Target = View<'c, K, V>;

    fn deref(&self) -> &Self::Target {
        &self.table
    }
}

macro_rules! transaction_tables {
    ($($(#[$doc:meta])* $constant:ident, $field:ident: $key:ty => $value:ty;)+) => {
        /// The tables of a write transaction, each of which records its changes for the log.
        impl<'c> Transaction<'c> {
            $(
                /// Returns the table of this name.
                pub(crate) fn $field(&self) -> Logged<'c, $key, $value> {
                    Logged::of(self.snapshot().$field(), stringify!($field), *self)
                }
            )+
        }
    };
}

with_tables!(transaction_tables);

/// Sets a single value.
pub(crate) fn write_single(singles: &Logged<'_, Text, &'static [u8]>, name: &str, value: &[u8]) {
    singles.insert(name, value);
    singles.insert(single::second(name).as_str(), value);
}
