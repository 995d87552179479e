//! What was committed to a table since the last checkpoint: rows in memory, each with the versions it has had, so that
//! whoever reads sees one commit and no part of a later one.

use std::{
    cmp::Ordering,
    collections::BTreeMap,
    marker::PhantomData,
    ops::Bound,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard},
};

use redb::Key;
use smallvec::SmallVec;

/// Bytes of a key that need no memory of their own: most keys have no more.
const INLINE_LEN: usize = 48;

/// The bytes of a key, ordered as the database orders them.
pub(crate) struct RowKey<K: Key + 'static> {
    bytes: SmallVec<[u8; INLINE_LEN]>,
    kind: PhantomData<fn() -> K>,
}

impl<K: Key + 'static> RowKey<K> {
    /// Copies a key.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self { bytes: SmallVec::from_slice(bytes), kind: PhantomData }
    }

    /// Returns its bytes, in the form of the database.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl<K: Key + 'static> Clone for RowKey<K> {
    fn clone(&self) -> Self {
        Self { bytes: self.bytes.clone(), kind: PhantomData }
    }
}

impl<K: Key + 'static> PartialEq for RowKey<K> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<K: Key + 'static> Eq for RowKey<K> {}

impl<K: Key + 'static> PartialOrd for RowKey<K> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<K: Key + 'static> Ord for RowKey<K> {
    fn cmp(&self, other: &Self) -> Ordering {
        K::compare(&self.bytes, &other.bytes)
    }
}

/// What a row was set to: its value, or none where it was removed.
pub(crate) type Change = Option<Arc<[u8]>>;

/// The versions of a row, each by the number of its commit.
struct Versions {
    newest: (u64, Change),
    /// The ones before, oldest first.
    older: Vec<(u64, Change)>,
}

impl Versions {
    /// Returns what a commit sees.
    fn at(&self, commit: u64) -> Option<&Change> {
        let older = self.older.iter().rev();
        std::iter::once(&self.newest).chain(older).find(|(made_by, _)| *made_by <= commit).map(|(_, change)| change)
    }

    fn put(&mut self, commit: u64, change: Change) {
        let before = std::mem::replace(&mut self.newest, (commit, change));
        if before.0 < commit {
            self.older.push(before);
        }
    }
}

/// The rows of one table that commits have changed since the last checkpoint. One writes, many read.
pub(crate) struct MemTable<K: Key + 'static>(RwLock<BTreeMap<RowKey<K>, Versions>>);

impl<K: Key + 'static> Default for MemTable<K> {
    fn default() -> Self {
        Self(RwLock::new(BTreeMap::new()))
    }
}

impl<K: Key + 'static> MemTable<K> {
    fn rows(&self) -> RwLockReadGuard<'_, BTreeMap<RowKey<K>, Versions>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says whether no row has changed.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows().is_empty()
    }

    /// Sets a row to a value, or removes it, with a commit no earlier than any before.
    pub(crate) fn put(&self, commit: u64, key: &[u8], value: Option<&[u8]>) {
        let change = value.map(|value| if value.is_empty() { Arc::default() } else { Arc::from(value) });
        let mut rows = self.0.write().unwrap_or_else(PoisonError::into_inner);
        match rows.entry(RowKey::of(key)) {
            std::collections::btree_map::Entry::Occupied(mut row) => row.get_mut().put(commit, change),
            std::collections::btree_map::Entry::Vacant(place) => {
                place.insert(Versions { newest: (commit, change), older: Vec::new() });
            }
        }
    }

    /// Returns what a commit sees of a row; none where it did not change.
    pub(crate) fn get(&self, commit: u64, key: &RowKey<K>) -> Option<Change> {
        self.rows().get(key)?.at(commit).cloned()
    }

    /// Returns the first changed row in a range that a commit sees.
    pub(crate) fn first(&self, commit: u64, range: &KeyRange<K>) -> Option<(RowKey<K>, Change)> {
        if range.is_empty() {
            return None;
        }
        self.rows().range(range.bounds()).find_map(|(key, row)| Some((key.clone(), row.at(commit)?.clone())))
    }

    /// Returns the last changed row in a range that a commit sees.
    pub(crate) fn last(&self, commit: u64, range: &KeyRange<K>) -> Option<(RowKey<K>, Change)> {
        if range.is_empty() {
            return None;
        }
        self.rows().range(range.bounds()).rev().find_map(|(key, row)| Some((key.clone(), row.at(commit)?.clone())))
    }

    /// Shows the newest version of every row, in order.
    pub(crate) fn each<E>(&self, mut see: impl FnMut(&[u8], Option<&[u8]>) -> Result<(), E>) -> Result<(), E> {
        self.rows().iter().try_for_each(|(key, row)| see(key.bytes(), row.newest.1.as_deref()))
    }
}

/// A range of keys.
pub(crate) struct KeyRange<K: Key + 'static> {
    /// Where it begins.
    pub(crate) low: Bound<RowKey<K>>,
    /// Where it ends.
    pub(crate) high: Bound<RowKey<K>>,
}

impl<K: Key + 'static> KeyRange<K> {
    fn bounds(&self) -> (Bound<&RowKey<K>>, Bound<&RowKey<K>>) {
        (self.low.as_ref(), self.high.as_ref())
    }

    /// Says whether nothing can be in it.
    fn is_empty(&self) -> bool {
        match self.bounds() {
            (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
            (Bound::Included(low), Bound::Included(high)) => low > high,
            (Bound::Included(low) | Bound::Excluded(low), Bound::Included(high) | Bound::Excluded(high)) => low >= high,
        }
    }
}
