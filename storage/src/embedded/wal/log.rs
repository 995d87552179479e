//! The write-ahead log: a group of batches is durable once its changes are appended here, with one write and one sync.
//!
//! redb alone writes about seventeen scattered pages for one payment. Therefore commits are appended here, and the
//! changed rows stay in memory ([`crate::embedded::wal::memtable`]). When a segment is full, a checkpoint writes these
//! rows into the database, each in its last version. After a crash the entries are replayed into the database. They
//! contain whole values, so that replay is idempotent.
//!
//! The log has two segments. While a checkpoint writes the rows of one segment, commits use the other.
//!
//! Entries are numbered and checksummed. The database stores the LSN at which the log begins, so that old entries in a
//! reused segment are ignored. An entry is written only after the entry before it was synced. Therefore the log ends at
//! the first unreadable entry, unless an entry with a higher number exists: then the disk has lost a synced entry, and
//! the store does not open.

use engine::mutant;
use redb::{Database, Durability, ReadTransaction, ReadableDatabase, StorageBackend, WriteTransaction};

use crate::embedded::{
    fault::Fault,
    tables::{META, begin_write, meta},
    wal::{
        entry::{Changes, HEAD_LEN, Lsn, Row, rows, unknown},
        replay::Replay,
        segment::Segment,
        single,
    },
};

/// Maximum capacity of a buffer that is reused, bytes. A larger one is freed, because large commits are rare.
const BUFFER_MAX: usize = 256 * 1_024;

/// The log with its write position.
#[derive(Debug)]
pub(crate) struct Log {
    segments: [Segment; 2],
    /// The index of the segment to which entries are appended.
    current: usize,
    /// The number of the first entry in the current segment.
    begin: u64,
    /// The database contains every entry before this number.
    checkpointed: u64,
    /// The LSN of the next entry.
    next: Lsn,
    /// The offset of the next entry in the current segment, bytes.
    end: u64,
    /// The segment size at which a checkpoint is due, bytes.
    limit: u64,
    /// The buffer of the last entry, for reuse: its memory is still in the processor's cache.
    buffer: Vec<u8>,
}

impl Log {
    /// Opens the log of a database, and replays its entries into the database durably.
    ///
    /// # Errors
    /// Those of the disk; [`Fault::Damaged`] if an entry is unreadable although later ones exist, or has content that
    /// this version does not support.
    pub(crate) fn recover(files: [Box<dyn StorageBackend>; 2], limit: u64, database: &Database) -> Result<Self, Fault> {
        let [first, second] = files;
        let segments = [Segment::of(first)?, Segment::of(second)?];
        let stored = stored(&database.begin_read()?)?;
        if stored.is_none() && segments.iter().any(|segment| !segment.is_empty()) {
            return Err(unknown("the database has no LSN of the log's start"));
        }
        let begin = stored.unwrap_or(Lsn::START);
        let mut next = begin;
        let mut contents = [segments[0].read()?, segments[1].read()?];
        if begin.entry_in(&contents[1]).is_some() {
            contents.swap(0, 1);
        }
        let read =
            if mutant!("log-not-replayed") { 0 } else { 2 - usize::from(mutant!("second-segment-not-replayed")) };
        let mut replay = Replay::default();
        for segment in &contents[..read] {
            let mut rest = segment.as_slice();
            while let Some(entry) = next.entry_in(rest) {
                collect(&mut replay, entry.changes)?;
                next = next.next();
                rest = entry.rest;
            }
        }
        if contents[..read].iter().any(|segment| next.is_passed_in(segment)) && !mutant!("damaged-log-is-truncated") {
            return Err(Fault::inconsistent("log", next.number(), "it is unreadable, and later entries exist"));
        }
        if stored != Some(next) {
            let transaction = begin_write(database)?;
            replay.write(&transaction)?;
            // The entries may never have reached the disk: a failed sync can leave them in the page cache.
            begin_at(transaction, next)?;
            if next != begin {
                let entries = next.number() - begin.number();
                tracing::info!(entries, "write-ahead log replayed into the database");
            }
        }
        let number = next.number();
        let buffer = Changes::default().into_bytes();
        Ok(Self { segments, current: 0, begin: number, checkpointed: number, next, end: 0, limit, buffer })
    }

    /// Returns whether this many quarters of the segment size limit are filled.
    pub(crate) const fn is_filled(&self, quarters: u64) -> bool {
        self.end >= self.limit / 4 * quarters
    }

    /// Returns whether the current segment has no entries.
    pub(crate) const fn is_empty(&self) -> bool {
        self.end == 0
    }

    /// Starts the entry of a commit.
    pub(crate) fn begin(&mut self) -> Changes {
        Changes::reusing(std::mem::take(&mut self.buffer))
    }

    /// Appends the entry of a commit durably.
    ///
    /// # Errors
    /// Those of the disk. The outcome of the commit is unknown, and no more writes are allowed.
    pub(crate) fn append(&mut self, changes: Changes) -> Result<(), Fault> {
        let mut entry = changes.into_bytes();
        let (head, changes) = entry.split_at_mut(HEAD_LEN);
        head.copy_from_slice(&self.next.head(changes)?);
        self.segments[self.current].write(self.end, &entry)?;
        (self.next, self.end) = (self.next.next(), self.end + entry.len() as u64);
        self.keep_buffer(entry);
        Ok(())
    }

    /// Drops the entry of a commit without changes.
    pub(crate) fn drop_empty(&mut self, changes: Changes) {
        self.keep_buffer(changes.into_bytes());
    }

    fn keep_buffer(&mut self, buffer: Vec<u8>) {
        if buffer.capacity() <= BUFFER_MAX {
            self.buffer = buffer;
        }
    }

    /// Seals the current segment and continues at the start of the other. Returns the LSN at which the log begins once
    /// a checkpoint of the sealed segment is durable ([`begin_at`]).
    ///
    /// # Panics
    /// If the database lacks entries of the other segment, which would be overwritten.
    pub(crate) fn rotate(&mut self) -> Lsn {
        assert_eq!(self.checkpointed, self.begin, "a segment is reused only after its checkpoint");
        (self.current, self.begin, self.end) = (1 - self.current, self.next.number(), 0);
        self.next
    }

    /// Records that the checkpoint of the sealed segment is durable: the database contains every entry before the
    /// current segment.
    pub(crate) const fn installed(&mut self) {
        self.checkpointed = self.begin;
    }

    /// Truncates a log whose entries are all in the database.
    ///
    /// # Errors
    /// Those of the disk.
    ///
    /// # Panics
    /// If the database lacks an entry.
    pub(crate) fn clear(&mut self) -> Result<(), Fault> {
        assert_eq!(self.checkpointed, self.next.number(), "the log is removed only after its checkpoint");
        self.segments.iter_mut().try_for_each(Segment::clear)
    }
}

/// Commits a database transaction that contains every entry before `begin`, and moves the start of the log there.
///
/// # Errors
/// Those of the disk. The log still has every entry, and no more writes are allowed.
pub(crate) fn begin_at(mut transaction: WriteTransaction, begin: Lsn) -> Result<(), Fault> {
    if !mutant!("log-start-not-stored") {
        single::store(&mut transaction.open_table(META)?, meta::LOG, &begin.to_bytes())?;
    }
    transaction.set_durability(Durability::Immediate)?;
    transaction.commit()?;
    Ok(())
}

/// Gives a copy of a store a new log identity, so that entries of the original's log are not replayed into the copy.
pub(crate) fn separate(transaction: &WriteTransaction, why: &[u8]) -> Result<(), Fault> {
    let mut names = transaction.open_table(META)?;
    let stored = single::stored(&names, meta::LOG)?;
    let original = stored.map_or(Ok(Lsn::START), |bytes| Lsn::from_bytes(&bytes))?;
    single::store(&mut names, meta::LOG, &original.in_other_log(why).to_bytes())
}

/// Returns the LSN at which the log begins; `None` in a new store.
fn stored(snapshot: &ReadTransaction) -> Result<Option<Lsn>, Fault> {
    let stored = single::stored(&snapshot.open_table(META)?, meta::LOG)?;
    stored.map(|bytes| Lsn::from_bytes(&bytes)).transpose()
}

fn collect<'l>(replay: &mut Replay<'l>, changes: &'l [u8]) -> Result<(), Fault> {
    for row in rows(changes) {
        let Row { table, key, value } = row?;
        if !replay.add(table, key, value) {
            return Err(unknown(&format!("unknown table {table} or invalid row")));
        }
    }
    Ok(())
}
