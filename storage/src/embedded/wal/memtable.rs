//! The memtable of a table: its rows changed between the starts of two checkpoints. Each row has versions, so that a
//! reader sees exactly one commit.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, VecDeque, btree_map::Entry},
    marker::PhantomData,
    ops::Bound,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use redb::Key;
use smallvec::SmallVec;

/// Size of keys that need no heap allocation, bytes. Most keys are smaller.
const INLINE_LEN: usize = 48;

/// The bytes of a key, in the order of the database.
pub(crate) struct RowKey<K: Key + 'static> {
    bytes: SmallVec<[u8; INLINE_LEN]>,
    kind: PhantomData<fn() -> K>,
}

impl<K: Key + 'static> RowKey<K> {
    /// Copies a key.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self { bytes: SmallVec::from_slice(bytes), kind: PhantomData }
    }

    /// Returns the key as stored.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl<K: Key + 'static> Clone for RowKey<K> {
    fn clone(&self) -> Self {
        // A plain copy of the bytes; `SmallVec::clone` copies byte by byte.
        Self::of(&self.bytes)
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

/// A row's new value; `None` if it was removed.
pub(crate) type Change = Option<Arc<[u8]>>;

/// The versions of a row, by commit number.
struct Versions {
    newest: (u64, Change),
    /// The versions before, oldest first.
    older: Vec<(u64, Change)>,
}

impl Versions {
    /// Returns the version that a commit sees.
    fn at(&self, commit: u64) -> Option<&Change> {
        let older = self.older.iter().rev();
        std::iter::once(&self.newest).chain(older).find(|(made_by, _)| *made_by <= commit).map(|(_, change)| change)
    }

    fn put(&mut self, by: WriteVersion, change: Change) {
        let before = std::mem::replace(&mut self.newest, (by.commit, change));
        if before.0 < by.commit {
            self.older.push(before);
        }
        // Readers at the horizon visit the latest version up to it. Earlier versions have no reader.
        let seen = self.older.iter().rposition(|(made_by, _)| *made_by <= by.horizon).unwrap_or(0);
        self.older.drain(..seen);
    }
}

/// The commit that writes, and the versions that it can drop.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WriteVersion {
    /// Its number.
    pub(crate) commit: u64,
    /// The oldest commit that a reader may pin.
    pub(crate) horizon: u64,
}

/// The rows of one table changed since a checkpoint began. One writer, many readers.
pub(crate) struct MemTable<K: Key + 'static>(RwLock<Rows<K>>);

struct Rows<K: Key + 'static> {
    changed: BTreeMap<RowKey<K>, Versions>,
    /// Tombstones: removed rows that the database does not have either, by the commit that removed them. They are
    /// dropped once no reader needs them, otherwise reading a queue would scan thousands of them.
    tombstones: VecDeque<(u64, RowKey<K>)>,
}

impl<K: Key + 'static> Default for MemTable<K> {
    fn default() -> Self {
        Self(RwLock::new(Rows { changed: BTreeMap::new(), tombstones: VecDeque::new() }))
    }
}

impl<K: Key + 'static> Rows<K> {
    fn put(&mut self, by: WriteVersion, key: RowKey<K>, change: Change) {
        match self.changed.entry(key) {
            Entry::Occupied(mut row) => row.get_mut().put(by, change),
            Entry::Vacant(place) => drop(place.insert(Versions { newest: (by.commit, change), older: Vec::new() })),
        }
    }

    fn drop_tombstones(&mut self, horizon: u64) {
        while let Some((_, key)) = self.tombstones.pop_front_if(|(removed_by, _)| *removed_by <= horizon) {
            if let Entry::Occupied(row) = self.changed.entry(key)
                && row.get().newest.1.is_none()
                && row.get().newest.0 <= horizon
            {
                row.remove();
            }
        }
    }
}

impl<K: Key + 'static> MemTable<K> {
    fn read(&self) -> RwLockReadGuard<'_, Rows<K>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Rows<K>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether no row has changed.
    pub(crate) fn is_empty(&self) -> bool {
        self.read().changed.is_empty()
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.read().changed.len()
    }

    /// Sets a row.
    pub(crate) fn insert(&self, by: WriteVersion, key: &[u8], value: &[u8]) {
        let value = if value.is_empty() { Arc::default() } else { Arc::from(value) };
        let mut rows = self.write();
        rows.drop_tombstones(by.horizon);
        rows.put(by, RowKey::of(key), Some(value));
    }

    /// Removes a row; `is_stored` says whether a lower layer has the row.
    pub(crate) fn remove(&self, by: WriteVersion, key: RowKey<K>, is_stored: bool) {
        let mut rows = self.write();
        rows.drop_tombstones(by.horizon);
        if !is_stored {
            rows.tombstones.push_back((by.commit, key.clone()));
        }
        rows.put(by, key, None);
    }

    /// Returns the version of a row that a commit sees; `None` if the row did not change.
    pub(crate) fn get(&self, commit: u64, key: &RowKey<K>) -> Option<Change> {
        self.read().changed.get(key)?.at(commit).cloned()
    }

    /// Returns the first changed row in a range, as a commit sees it.
    pub(crate) fn first(&self, commit: u64, range: &KeyRange<K>) -> Option<(RowKey<K>, Change)> {
        let seen = |(key, row): (&RowKey<K>, &Versions)| Some((key.clone(), row.at(commit)?.clone()));
        self.read().changed.range(range.bounds()?).find_map(seen)
    }

    /// Returns the last changed row in a range, as a commit sees it.
    pub(crate) fn last(&self, commit: u64, range: &KeyRange<K>) -> Option<(RowKey<K>, Change)> {
        let seen = |(key, row): (&RowKey<K>, &Versions)| Some((key.clone(), row.at(commit)?.clone()));
        self.read().changed.range(range.bounds()?).rev().find_map(seen)
    }

    /// Passes the latest version of every row to `visit`, in key order.
    pub(crate) fn each<E>(&self, mut visit: impl FnMut(&[u8], Option<&[u8]>) -> Result<(), E>) -> Result<(), E> {
        self.read().changed.iter().try_for_each(|(key, row)| visit(key.bytes(), row.newest.1.as_deref()))
    }
}

type Bounds<'r, K> = (Bound<&'r RowKey<K>>, Bound<&'r RowKey<K>>);

/// A range of keys.
pub(crate) struct KeyRange<K: Key + 'static> {
    /// The lower bound.
    pub(crate) low: Bound<RowKey<K>>,
    /// The upper bound.
    pub(crate) high: Bound<RowKey<K>>,
}

impl<K: Key + 'static> KeyRange<K> {
    /// Returns the bounds; `None` if the range is empty, which `BTreeMap::range` would reject with a panic.
    fn bounds(&self) -> Option<Bounds<'_, K>> {
        let bounds = (self.low.as_ref(), self.high.as_ref());
        let is_empty = match bounds {
            (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
            (Bound::Included(low), Bound::Included(high)) => low > high,
            (Bound::Included(low) | Bound::Excluded(low), Bound::Included(high) | Bound::Excluded(high)) => low >= high,
        };
        (!is_empty).then_some(bounds)
    }
}
