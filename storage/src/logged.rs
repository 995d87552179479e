//! A table whose every change is noted for the log: nobody who writes to it can forget to.

use std::{borrow::Borrow, ops::Deref};

use redb::{AccessGuard, Key, StorageError, Table, Value};

use crate::log::Changes;

/// A table of a write transaction. It reads like the table it holds; its changes are noted where somebody wants to know
/// them.
pub(crate) struct Logged<'t, K: Key + 'static, V: Value + 'static> {
    table: Table<'t, K, V>,
    name: &'static str,
    changes: Option<&'t Changes>,
}

impl<'t, K: Key + 'static, V: Value + 'static> Logged<'t, K, V> {
    /// Takes a table.
    pub(crate) const fn of(table: Table<'t, K, V>, name: &'static str, changes: Option<&'t Changes>) -> Self {
        Self { table, name, changes }
    }

    /// Puts a row into the table; returns the value it had.
    pub(crate) fn insert<'k, 'v>(
        &mut self,
        key: impl Borrow<K::SelfType<'k>>,
        value: impl Borrow<V::SelfType<'v>>,
    ) -> Result<Option<AccessGuard<'_, V>>, StorageError> {
        if let Some(changes) = self.changes {
            let (key, value) = (K::as_bytes(key.borrow()), V::as_bytes(value.borrow()));
            changes.note(self.name, key.as_ref(), Some(value.as_ref()));
        }
        self.table.insert(key, value)
    }

    /// Takes a row out of the table; returns the value it had.
    pub(crate) fn remove<'k>(
        &mut self,
        key: impl Borrow<K::SelfType<'k>>,
    ) -> Result<Option<AccessGuard<'_, V>>, StorageError> {
        if let Some(changes) = self.changes {
            changes.note(self.name, K::as_bytes(key.borrow()).as_ref(), None);
        }
        self.table.remove(key)
    }
}

impl<'t, K: Key + 'static, V: Value + 'static> Deref for Logged<'t, K, V> {
    type Target = Table<'t, K, V>;

    fn deref(&self) -> &Self::Target {
        &self.table
    }
}
