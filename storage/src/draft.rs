//! A commit in the making: its tables, whose every change is noted for the log. Nobody who writes to them can forget to.

use std::{borrow::Borrow, ops::Deref};

use redb::{Key, Value};

use crate::{log::Changes, snapshot::Snapshot, view::View};

/// The store as a commit in the making leaves it. Nobody else sees it before the commit is published.
pub(crate) struct Draft<'c> {
    snapshot: &'c Snapshot,
    changes: &'c Changes,
}

impl<'c> Draft<'c> {
    /// Begins with what the commit before left; `snapshot` is that of the next.
    pub(crate) const fn of(snapshot: &'c Snapshot, changes: &'c Changes) -> Self {
        Self { snapshot, changes }
    }

    /// Returns the snapshot that is written to, and where changes are noted.
    pub(crate) const fn parts(&self) -> (&'c Snapshot, &'c Changes) {
        (self.snapshot, self.changes)
    }
}

/// A table of a commit in the making. It reads like the table it is; its changes are noted.
pub(crate) struct Logged<'c, K: Key + 'static, V: Value + 'static> {
    table: View<'c, K, V>,
    name: &'static str,
    changes: &'c Changes,
}

impl<'c, K: Key + 'static, V: Value + 'static> Logged<'c, K, V> {
    /// Takes a table.
    pub(crate) const fn of(table: View<'c, K, V>, name: &'static str, changes: &'c Changes) -> Self {
        Self { table, name, changes }
    }

    /// Puts a row into the table.
    pub(crate) fn insert<'k, 'v>(&self, key: impl Borrow<K::SelfType<'k>>, value: impl Borrow<V::SelfType<'v>>) {
        let (key, value) = (K::as_bytes(key.borrow()), V::as_bytes(value.borrow()));
        self.put(key.as_ref(), Some(value.as_ref()));
    }

    /// Takes a row out of the table, if it is there.
    pub(crate) fn remove<'k>(&self, key: impl Borrow<K::SelfType<'k>>) {
        self.put(K::as_bytes(key.borrow()).as_ref(), None);
    }

    fn put(&self, key: &[u8], value: Option<&[u8]>) {
        self.changes.note(self.name, key, value);
        self.table.put(key, value);
    }
}

impl<'c, K: Key + 'static, V: Value + 'static> Deref for Logged<'c, K, V> {
    type Target = View<'c, K, V>;

    fn deref(&self) -> &Self::Target {
        &self.table
    }
}
