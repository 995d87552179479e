//! What was committed to a table between two checkpoints' beginnings: rows in memory, each with the versions it has had, so that
//! whoever reads sees one commit and no part of a later one.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, VecDeque, btree_map::Entry},
    marker::PhantomData,
    ops::Bound,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
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
        // A copy of bytes; the vector's own clone goes through them one by one.
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

    fn put(&mut self, by: Writing, change: Change) {
        let before = std::mem::replace(&mut self.newest, (by.commit, change));
        if before.0 < by.commit {
            self.older.push(before);
        }
        // Who reads at the horizon sees the newest of those up to it, and nobody sees the ones before that.
        let seen = self.older.iter().rposition(|(made_by, _)| *made_by <= by.horizon).unwrap_or(0);
        self.older.drain(..seen);
    }
}

/// The commit that is being made, and what it may forget.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Writing {
    /// Its number.
    pub(crate) commit: u64,
    /// Nobody reads as of an earlier commit than this one.
    pub(crate) horizon: u64,
}

/// The rows of one table that commits have changed since a checkpoint began. One writes, many read.
pub(crate) struct MemTable<K: Key + 'static>(RwLock<Rows<K>>);

struct Rows<K: Key + 'static> {
    changed: BTreeMap<RowKey<K>, Versions>,
    /// Removed rows that are not stored either, by the commit that removed them. Once everybody sees them removed they
    /// can go: a queue whose entries come and go would be read through thousands that are gone.
    gone: VecDeque<(u64, RowKey<K>)>,
}

impl<K: Key + 'static> Default for MemTable<K> {
    fn default() -> Self {
        Self(RwLock::new(Rows { changed: BTreeMap::new(), gone: VecDeque::new() }))
    }
}

impl<K: Key + 'static> Rows<K> {
    fn put(&mut self, by: Writing, key: RowKey<K>, change: Change) {
        match self.changed.entry(key) {
            Entry::Occupied(mut row) => row.get_mut().put(by, change),
            Entry::Vacant(place) => drop(place.insert(Versions { newest: (by.commit, change), older: Vec::new() })),
        }
    }

    fn forget_gone(&mut self, horizon: u64) {
        while let Some((_, key)) = self.gone.pop_front_if(|(removed_by, _)| *removed_by <= horizon) {
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

    /// Says whether no row has changed.
    pub(crate) fn is_empty(&self) -> bool {
        self.read().changed.is_empty()
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.read().changed.len()
    }

    /// Sets a row to a value.
    pub(crate) fn insert(&self, by: Writing, key: &[u8], value: &[u8]) {
        let value = if value.is_empty() { Arc::default() } else { Arc::from(value) };
        let mut rows = self.write();
        rows.forget_gone(by.horizon);
        rows.put(by, RowKey::of(key), Some(value));
    }

    /// Removes a row, of which something is stored below or not.
    pub(crate) fn remove(&self, by: Writing, key: RowKey<K>, is_stored: bool) {
        let mut rows = self.write();
        rows.forget_gone(by.horizon);
        if !is_stored {
            rows.gone.push_back((by.commit, key.clone()));
        }
        rows.put(by, key, None);
    }

    /// Returns what a commit sees of a row; none where it did not change.
    pub(crate) fn get(&self, commit: u64, key: &RowKey<K>) -> Option<Change> {
        self.read().changed.get(key)?.at(commit).cloned()
    }

    /// Returns the first changed row in a range that a commit sees.
    pub(crate) fn first(&self, commit: u64, range: &KeyRange<K>) -> Option<(RowKey<K>, Change)> {
        let seen = |(key, row): (&RowKey<K>, &Versions)| Some((key.clone(), row.at(commit)?.clone()));
        self.read().changed.range(range.bounds()?).find_map(seen)
    }

    /// Returns the last changed row in a range that a commit sees.
    pub(crate) fn last(&self, commit: u64, range: &KeyRange<K>) -> Option<(RowKey<K>, Change)> {
        let seen = |(key, row): (&RowKey<K>, &Versions)| Some((key.clone(), row.at(commit)?.clone()));
        self.read().changed.range(range.bounds()?).rev().find_map(seen)
    }

    /// Shows the newest version of every row, in order.
    pub(crate) fn each<E>(&self, mut see: impl FnMut(&[u8], Option<&[u8]>) -> Result<(), E>) -> Result<(), E> {
        self.read().changed.iter().try_for_each(|(key, row)| see(key.bytes(), row.newest.1.as_deref()))
    }
}

type Bounds<'r, K> = (Bound<&'r RowKey<K>>, Bound<&'r RowKey<K>>);

/// A range of keys.
pub(crate) struct KeyRange<K: Key + 'static> {
    /// Where it begins.
    pub(crate) low: Bound<RowKey<K>>,
    /// Where it ends.
    pub(crate) high: Bound<RowKey<K>>,
}

impl<K: Key + 'static> KeyRange<K> {
    /// Returns its ends; none where nothing can lie between them, which the map would not take.
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
