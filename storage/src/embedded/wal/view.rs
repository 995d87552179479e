//! A table as of one commit, merged from three layers: the database as of the last checkpoint, the sealed memtable that
//! the next checkpoint writes, and the active memtable.

use std::{
    borrow::Borrow,
    cmp::Ordering,
    ops::{Bound, RangeBounds},
    sync::Arc,
};

use engine::mutant;
use redb::{
    AccessGuard, Key, ReadOnlyTable, ReadableTableMetadata, StorageError, TableDefinition, Value, WriteTransaction,
};

use crate::{
    embedded::{
        damage::DamagedRows,
        fault::Fault,
        tables::{CHECKSUM, name_of, set_row},
        wal::memtable::{Change, KeyRange, MemTable, RowKey, WriteVersion},
    },
    record::checked::{self, Checked, Seed},
};

/// The layers of a table.
pub(crate) struct Layers<K: Key + 'static, V: Value + 'static> {
    stored: Arc<ReadOnlyTable<K, Checked<V>>>,
    name: &'static str,
    seed: Seed,
    damages: DamagedRows,
    /// The sealed memtable that a checkpoint is writing. It does not change.
    immutable: Option<Arc<MemTable<K>>>,
    recent: Arc<MemTable<K>>,
}

impl<K: Key + 'static, V: Value + 'static> Layers<K, V> {
    /// Creates the layers over the state of a checkpoint.
    pub(crate) fn over(stored: ReadOnlyTable<K, Checked<V>>, name: &'static str, damages: DamagedRows) -> Self {
        Self { stored: Arc::new(stored), name, seed: Seed::of(name), damages, immutable: None, recent: Arc::default() }
    }

    /// Returns the layers after sealing the memtable, which later commits do not change.
    pub(crate) fn seal_memtable(&self) -> Self {
        assert!(self.immutable.is_none(), "one checkpoint at a time");
        Self {
            stored: Arc::clone(&self.stored),
            damages: self.damages.clone(),
            immutable: Some(Arc::clone(&self.recent)),
            recent: Arc::default(),
            ..*self
        }
    }

    /// Returns the layers over the state that a checkpoint wrote.
    pub(crate) fn install_checkpoint(&self, stored: ReadOnlyTable<K, Checked<V>>) -> Self {
        Self {
            stored: Arc::new(stored),
            damages: self.damages.clone(),
            immutable: None,
            recent: Arc::clone(&self.recent),
            ..*self
        }
    }

    /// Returns the table as of a commit.
    pub(crate) const fn view(&self, commit: u64) -> View<'_, K, V> {
        View { layers: self, commit }
    }

    #[cfg(test)]
    pub(crate) fn changed_rows(&self) -> usize {
        self.recent.len()
    }

    /// Returns the memtables, latest first.
    fn memory(&self) -> impl DoubleEndedIterator<Item = &MemTable<K>> {
        let immutable = self.immutable.as_ref().filter(|_| !mutant!("sealed-memtable-not-read"));
        std::iter::once(&self.recent).chain(immutable).map(|table| &**table)
    }

    fn is_stored(&self, key: &[u8]) -> Result<bool, StorageError> {
        Ok(self.stored.get(K::from_bytes(key))?.is_some())
    }

    /// Writes the sealed memtable into the database table, in key order.
    pub(crate) fn write_immutable(
        &self,
        transaction: &WriteTransaction,
        definition: TableDefinition<'static, K, Checked<V>>,
    ) -> Result<(), Fault> {
        let Some(immutable) = self.immutable.as_ref().filter(|immutable| !immutable.is_empty()) else { return Ok(()) };
        let mut table = transaction.open_table(definition)?;
        immutable.each(|key, value| match value {
            None if mutant!("checkpoint-keeps-removed") => Ok(()),
            value => set_row(&mut table, self.seed, key, value),
        })
    }

    /// Returns the fault of a row whose checksum does not match, and records it.
    fn damaged(&self, key: &[u8]) -> Fault {
        let fault = Fault::inconsistent(self.name, name_of::<K>(self.name, key), CHECKSUM);
        self.damages.note_fault(&fault);
        fault
    }
}

/// A table as of one commit.
pub(crate) struct View<'s, K: Key + 'static, V: Value + 'static> {
    layers: &'s Layers<K, V>,
    commit: u64,
}

impl<'s, K: Key + 'static, V: Value + 'static> View<'s, K, V> {
    /// Sets a row in the writing commit.
    pub(crate) fn insert(&self, by: WriteVersion, key: &[u8], value: &[u8]) {
        self.layers.recent.insert(by, key, value);
    }

    /// Removes a row in the writing commit.
    pub(crate) fn remove(&self, by: WriteVersion, key: &[u8]) -> Result<(), StorageError> {
        let row = RowKey::of(key);
        let is_below = |immutable: &Arc<MemTable<K>>| immutable.get(self.commit, &row).is_some();
        let is_stored = self.layers.immutable.as_ref().is_some_and(is_below) || self.layers.is_stored(key)?;
        self.layers.recent.remove(by, row, is_stored);
        Ok(())
    }

    /// Returns the value of a row.
    ///
    /// # Errors
    /// [`Fault::Damaged`] if the checksum does not match; those of the disk.
    pub(crate) fn get<'k>(&self, key: impl Borrow<K::SelfType<'k>>) -> Result<Option<Found<V>>, Fault> {
        let row = RowKey::of(K::as_bytes(key.borrow()).as_ref());
        match self.layers.memory().find_map(|table| table.get(self.commit, &row)) {
            Some(change) => Ok(change.map(Found::Recent)),
            None => match self.layers.stored.get(key)? {
                Some(sealed) if self.layers.seed.open(row.bytes(), sealed.value()).is_none() => {
                    Err(self.layers.damaged(row.bytes()))
                }
                sealed => Ok(sealed.map(Found::Stored)),
            },
        }
    }

    /// As [`Self::get`], but a damaged row is recorded and counts as missing. For rows that can be rebuilt.
    pub(crate) fn get_intact<'k>(&self, key: impl Borrow<K::SelfType<'k>>) -> Result<Option<Found<V>>, Fault> {
        Ok(self.layers.damages.skip_damaged(self.get(key))?.flatten())
    }

    /// Returns whether a row exists, damaged or not.
    pub(crate) fn has<'k>(&self, key: impl Borrow<K::SelfType<'k>>) -> Result<bool, Fault> {
        let row = RowKey::of(K::as_bytes(key.borrow()).as_ref());
        match self.layers.memory().find_map(|table| table.get(self.commit, &row)) {
            Some(change) => Ok(change.is_some()),
            None => Ok(self.layers.is_stored(row.bytes())?),
        }
    }

    /// Turns a damaged row into `None` and records it.
    pub(crate) fn skip_damaged<T>(&self, read: Result<T, Fault>) -> Result<Option<T>, Fault> {
        self.layers.damages.skip_damaged(read)
    }

    /// Returns the intact rows of a range, in key order. Damaged rows are recorded and skipped.
    pub(crate) fn range<'k, KR: Borrow<K::SelfType<'k>>>(
        &self,
        range: impl RangeBounds<KR>,
    ) -> Result<Range<'s, K, V>, Fault> {
        let bound = |bound: Bound<&KR>| bound.map(|key| RowKey::of(K::as_bytes(key.borrow()).as_ref()));
        let keys = KeyRange { low: bound(range.start_bound()), high: bound(range.end_bound()) };
        Ok(Range {
            layers: self.layers,
            stored: PeekableEnds::of(self.layers.stored.range(range)?),
            recent: PeekableEnds::of(Recent { layers: self.layers, commit: self.commit, rest: keys }),
        })
    }

    /// Returns all intact rows, in key order.
    pub(crate) fn iter(&self) -> Result<Range<'s, K, V>, Fault> {
        self.range::<K::SelfType<'_>>(..)
    }

    /// Returns the first intact row.
    pub(crate) fn first(&self) -> Result<Option<Row<K, V>>, Fault> {
        self.iter()?.next().transpose()
    }

    /// Returns the last intact row.
    pub(crate) fn last(&self) -> Result<Option<Row<K, V>>, Fault> {
        self.iter()?.next_back().transpose()
    }

    /// Passes every stored row with its checksum to `visit`, damaged ones included, in key order.
    pub(crate) fn each_sealed(&self, visit: &mut impl FnMut(&[u8], &[u8]) -> Result<(), Fault>) -> Result<(), Fault> {
        let mut rows = self.iter()?;
        while let Some(row) = rows.take_row(End::Front) {
            let (key, value) = row?;
            let key = key.value();
            let key = K::as_bytes(&key);
            match &value {
                Found::Stored(sealed) => visit(key.as_ref(), sealed.value())?,
                Found::Recent(bytes) => visit(key.as_ref(), &self.layers.seed.seal(key.as_ref(), bytes))?,
            }
        }
        Ok(())
    }

    /// Reads every row; passes the names of damaged rows to `visit`.
    pub(crate) fn each_damaged(&self, visit: &mut impl FnMut(String)) -> Result<(), Fault> {
        let mut rows = self.iter()?;
        while let Some(row) = rows.take_row(End::Front) {
            if let Err(fault) = rows.check(row?) {
                match fault {
                    Fault::Damaged { key, .. } => visit(key),
                    fault => return Err(fault),
                }
            }
        }
        Ok(())
    }

    /// Returns the number of rows: those of the database plus the effect of each row in the memtables.
    pub(crate) fn len(&self) -> Result<u64, StorageError> {
        let mut len = self.layers.stored.len()?;
        let everything = KeyRange { low: Bound::Unbounded, high: Bound::Unbounded };
        for (key, change) in (Recent { layers: self.layers, commit: self.commit, rest: everything }) {
            let was_there = self.layers.is_stored(key.bytes())?;
            len = len + u64::from(change.is_some()) - u64::from(was_there);
        }
        Ok(len)
    }
}

/// The value of a row that was read.
pub(crate) enum Found<T: Value + 'static> {
    /// In the database, with its checksum.
    Stored(AccessGuard<'static, Checked<T>>),
    /// In a memtable.
    Recent(Arc<[u8]>),
}

impl<T: Value + 'static> Found<T> {
    /// Decodes the value.
    pub(crate) fn value(&self) -> T::SelfType<'_> {
        match self {
            Self::Stored(guard) => T::from_bytes(checked::value_of(guard.value())),
            Self::Recent(bytes) => T::from_bytes(bytes),
        }
    }
}

/// The key of a row that was read.
pub(crate) enum FoundKey<K: Key + 'static> {
    /// In the database.
    Stored(AccessGuard<'static, K>),
    /// In a memtable.
    Recent(RowKey<K>),
}

impl<K: Key + 'static> FoundKey<K> {
    /// Decodes the key.
    pub(crate) fn value(&self) -> K::SelfType<'_> {
        match self {
            Self::Stored(guard) => guard.value(),
            Self::Recent(key) => K::from_bytes(key.bytes()),
        }
    }
}

/// A key and its value.
pub(crate) type Row<K, V> = (FoundKey<K>, Found<V>);

/// The rows of a range in the memtables. Each row is looked up on demand, so that readers do not block commits.
struct Recent<'s, K: Key + 'static, V: Value + 'static> {
    layers: &'s Layers<K, V>,
    commit: u64,
    /// The remaining range.
    rest: KeyRange<K>,
}

impl<K: Key + 'static, V: Value + 'static> Iterator for Recent<'_, K, V> {
    type Item = (RowKey<K>, Change);

    fn next(&mut self) -> Option<Self::Item> {
        // Of equal keys the first one is the latest version.
        let firsts = self.layers.memory().filter_map(|table| table.first(self.commit, &self.rest));
        let (key, change) = firsts.min_by(|(one, _), (other, _)| one.cmp(other))?;
        self.rest.low = Bound::Excluded(key.clone());
        Some((key, change))
    }
}

impl<K: Key + 'static, V: Value + 'static> DoubleEndedIterator for Recent<'_, K, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        // Of equal keys the last one is the latest version.
        let lasts = self.layers.memory().rev().filter_map(|table| table.last(self.commit, &self.rest));
        let (key, change) = lasts.max_by(|(one, _), (other, _)| one.cmp(other))?;
        self.rest.high = Bound::Excluded(key.clone());
        Some((key, change))
    }
}

/// An iterator that can be peeked at both ends.
struct PeekableEnds<I: DoubleEndedIterator> {
    rows: I,
    front: Option<I::Item>,
    back: Option<I::Item>,
    is_over: bool,
}

impl<I: DoubleEndedIterator> PeekableEnds<I> {
    const fn of(rows: I) -> Self {
        Self { rows, front: None, back: None, is_over: false }
    }

    /// Returns the next row at one end without consuming it.
    fn peek(&mut self, end: End) -> &mut Option<I::Item> {
        let (here, there) = match end {
            End::Front => (&mut self.front, &mut self.back),
            End::Back => (&mut self.back, &mut self.front),
        };
        if here.is_none() && !self.is_over {
            *here = match end {
                End::Front => self.rows.next(),
                End::Back => self.rows.next_back(),
            };
            self.is_over = here.is_none();
        }
        if here.is_none() {
            *here = there.take();
        }
        here
    }
}

#[derive(Clone, Copy)]
enum End {
    Front,
    Back,
}

/// The rows of a range as of one commit.
pub(crate) struct Range<'s, K: Key + 'static, V: Value + 'static> {
    layers: &'s Layers<K, V>,
    stored: PeekableEnds<redb::Range<'static, K, Checked<V>>>,
    recent: PeekableEnds<Recent<'s, K, V>>,
}

impl<K: Key + 'static, V: Value + 'static> Range<'_, K, V> {
    fn take_row(&mut self, end: End) -> Option<Result<Row<K, V>, StorageError>> {
        loop {
            let (stored, recent) = (self.stored.peek(end), self.recent.peek(end));
            let order = match (&*stored, &*recent) {
                (None, None) => return None,
                (Some(_), None) | (Some(Err(_)), _) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(Ok((key, _))), Some((recent, _))) => {
                    let order = K::compare(K::as_bytes(&key.value()).as_ref(), recent.bytes());
                    match end {
                        End::Front => order,
                        End::Back => order.reverse(),
                    }
                }
            };
            if order == Ordering::Less {
                return stored.take().map(|row| row.map(|(key, value)| (FoundKey::Stored(key), Found::Stored(value))));
            }
            if order == Ordering::Equal {
                // A row of a memtable replaces the stored one.
                *stored = None;
            }
            if let Some((key, Some(value))) = recent.take() {
                return Some(Ok((FoundKey::Recent(key), Found::Recent(value))));
            }
        }
    }
}

impl<K: Key + 'static, V: Value + 'static> Range<'_, K, V> {
    /// Returns the row if its checksum matches.
    fn check(&self, row: Row<K, V>) -> Result<Row<K, V>, Fault> {
        if let (key, Found::Stored(sealed)) = &row {
            let key = key.value();
            let key = K::as_bytes(&key);
            if self.layers.seed.open(key.as_ref(), sealed.value()).is_none() {
                return Err(self.layers.damaged(key.as_ref()));
            }
        }
        Ok(row)
    }

    /// Returns the keys of all rows, damaged ones included.
    pub(crate) fn all_keys(mut self) -> impl Iterator<Item = Result<FoundKey<K>, Fault>> {
        std::iter::from_fn(move || Some(self.take_row(End::Front)?.map(|(key, _)| key).map_err(Fault::from)))
    }

    /// Returns the next intact row.
    fn take_intact(&mut self, end: End) -> Option<Result<Row<K, V>, Fault>> {
        loop {
            let row = self.take_row(end)?;
            match row.map_err(Fault::from).and_then(|row| self.check(row)) {
                Err(Fault::Damaged { .. }) => {}
                row => return Some(row),
            }
        }
    }
}

impl<K: Key + 'static, V: Value + 'static> Iterator for Range<'_, K, V> {
    type Item = Result<Row<K, V>, Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        self.take_intact(End::Front)
    }
}

impl<K: Key + 'static, V: Value + 'static> DoubleEndedIterator for Range<'_, K, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.take_intact(End::Back)
    }
}
