//! The log in front of the database: a group of batches is durable once what it changes stands here, written at once and
//! synced once.
//!
//! redb by itself writes some seventeen pages, scattered, for one payment. So commits are appended here, and the rows they
//! change stay in memory ([`crate::embedded::wal::memtable`]). When the log is full they are written into the database together, each as
//! it was left last: a checkpoint. After a crash the rows are put into the database from here: they are whole values, not
//! differences, so to put them twice is to put them once.
//!
//! The log has two files. While a checkpoint writes what one of them holds, commits go on in the other.
//!
//! Entries are numbered, and each is checked by itself. The database says with which number the log begins, so what an
//! earlier round left in a file never passes for an entry of this one. An entry is written when the one before it is synced:
//! where one cannot be read the log ends, if none with a higher number is there. If there is one, the disk has lost what it
//! had kept, and nobody may go on as if that had never been.

use std::cell::RefCell;

use engine::mutant;
use redb::{Database, Durability, ReadTransaction, ReadableDatabase, StorageBackend, WriteTransaction};
use sha2::{Digest as _, Sha256};

use crate::embedded::{
    fault::Fault,
    tables::{META, begin_write, meta},
    wal::{replay::Replay, single},
};

/// Bytes by which the file grows: a sync that also records a new length costs more, so there are few of them.
const GROWTH: u64 = 64 * 1024;
/// What an entry begins with: an entry is found by it where the ones before cannot be read. No text has its first byte.
const MAGIC: [u8; 4] = *b"\xf5log";
/// Bytes of an entry before its changes: the mark, their length, its number, and the checksum.
const HEAD_LEN: usize = MAGIC.len() + 4 + 8 + DIGEST_LEN;
const DIGEST_LEN: usize = 16;
/// Stands for the length of a value where a row is removed.
const REMOVED: u32 = u32::MAX;

type Digest = [u8; DIGEST_LEN];

/// An entry's place in the order of commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lsn {
    /// Tells the log of a store from those of its copies.
    log: Digest,
    number: u64,
}

impl Lsn {
    /// Where the log of a new store begins.
    pub(crate) const START: Self = Self { log: [0; DIGEST_LEN], number: 0 };

    /// Returns it in the form of the database: [`meta::LOG`].
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        [self.log.as_slice(), &self.number.to_be_bytes()].concat()
    }

    /// Reads it, or says that the store has the form of before entries were numbered.
    fn from_bytes(stored: Option<&[u8]>) -> Result<(Self, bool), Fault> {
        let wrong = || Fault::contradicted("meta", meta::LOG, "a position has 24 bytes");
        let Some(bytes) = stored else { return Ok((Self::START, true)) };
        let (log, number) = bytes.split_first_chunk().ok_or_else(wrong)?;
        if number.is_empty() {
            return Ok((Self { log: *log, number: 0 }, true));
        }
        let number = u64::from_be_bytes(number.try_into().map_err(|_| wrong())?);
        Ok((Self { log: *log, number }, false))
    }

    const fn next(self) -> Self {
        Self { number: self.number + 1, ..self }
    }

    fn checksum(&self, changes: &[u8]) -> Digest {
        digest(&[&self.log, &self.number.to_be_bytes(), changes])
    }

    /// Returns the entry of this number, where the bytes begin with it.
    fn entry_in<'b>(&self, bytes: &'b [u8]) -> Option<Entry<'b>> {
        Entry::at_start_of(bytes).filter(|entry| entry.number == self.number && entry.is_of(self))
    }

    /// Says whether an entry that comes after the one of this number stands anywhere in the bytes.
    fn is_passed_in(&self, bytes: &[u8]) -> bool {
        let mut entries = memchr::memmem::find_iter(bytes, &MAGIC).filter_map(|at| Entry::at_start_of(&bytes[at..]));
        entries.any(|entry| entry.number > self.number && entry.is_of(self))
    }
}

/// An entry as it stands in a file.
struct Entry<'b> {
    number: u64,
    checksum: Digest,
    changes: &'b [u8],
    /// What comes after it.
    rest: &'b [u8],
}

impl<'b> Entry<'b> {
    fn at_start_of(bytes: &'b [u8]) -> Option<Self> {
        let (length, rest) = bytes.strip_prefix(&MAGIC)?.split_first_chunk()?;
        let (number, rest) = rest.split_first_chunk()?;
        let (checksum, rest) = rest.split_first_chunk()?;
        let (changes, rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
        Some(Self { number: u64::from_be_bytes(*number), checksum: *checksum, changes, rest })
    }

    /// Says whether it was written to this log, and is whole.
    fn is_of(&self, log: &Lsn) -> bool {
        Lsn { number: self.number, ..*log }.checksum(self.changes) == self.checksum
    }
}

/// Most commits of one batch need no more bytes.
const USUAL_LEN: usize = 4_096;
/// Room for more bytes is given back: a large commit is seldom followed by another.
const ROOM_MAX: usize = 256 * 1_024;

/// What a commit changes, row by row, in the form of the log.
#[derive(Debug)]
pub(crate) struct Changes(RefCell<Vec<u8>>);

impl Default for Changes {
    fn default() -> Self {
        Self::in_room_of(Vec::with_capacity(USUAL_LEN))
    }
}

impl Changes {
    /// Notes nothing so far, where something else was noted before.
    fn in_room_of(mut bytes: Vec<u8>) -> Self {
        bytes.clear();
        bytes.resize(HEAD_LEN, 0);
        Self(RefCell::new(bytes))
    }

    /// Notes that a row has a value now, or is gone.
    pub(crate) fn note(&self, table: &str, key: &[u8], value: Option<&[u8]>) {
        let mut bytes = self.0.borrow_mut();
        put(&mut bytes, table.as_bytes());
        put(&mut bytes, key);
        match value {
            Some(value) => put(&mut bytes, value),
            None => bytes.extend(REMOVED.to_be_bytes()),
        }
    }

    /// Says whether nothing changes.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.borrow().len() == HEAD_LEN
    }

    fn into_bytes(self) -> Vec<u8> {
        self.0.into_inner()
    }

    /// Returns the names of the tables of which rows change.
    #[cfg(test)]
    pub(crate) fn tables(&self) -> std::collections::BTreeSet<String> {
        let bytes = self.0.borrow();
        let changes = rows(&bytes[HEAD_LEN..]).map(|row| row.expect("it was written just now").table.to_owned());
        changes.collect()
    }
}

fn put(bytes: &mut Vec<u8>, part: &[u8]) {
    bytes.extend(u32::try_from(part.len()).expect("a row is shorter than 4 GiB").to_be_bytes());
    bytes.extend(part);
}

/// The log and where it stands.
#[derive(Debug)]
pub(crate) struct Log {
    files: [LogFile; 2],
    /// Which of them is written.
    current: usize,
    /// Which entry is next.
    next: Lsn,
    /// Where in the file it goes, bytes.
    end: u64,
    /// How long a file gets before a checkpoint, bytes.
    limit: u64,
    /// Room for the next entry: memory that was written a moment ago is written fastest.
    room: Vec<u8>,
}

#[derive(Debug)]
struct LogFile {
    backend: Box<dyn StorageBackend>,
    /// Bytes.
    length: u64,
}

impl LogFile {
    fn of(backend: Box<dyn StorageBackend>) -> Result<Self, Fault> {
        let length = backend.len()?;
        Ok(Self { backend, length })
    }

    fn read(&self) -> Result<Vec<u8>, Fault> {
        let mut bytes = vec![0; usize::try_from(self.length).map_err(std::io::Error::other)?];
        self.backend.read(0, &mut bytes)?;
        Ok(bytes)
    }

    fn write(&mut self, offset: u64, entry: &[u8]) -> Result<(), Fault> {
        let end = offset + entry.len() as u64;
        if end > self.length {
            let longer = end.next_multiple_of(GROWTH);
            self.backend.set_len(longer)?;
            // Blocks that were written before are not recorded anew by each sync.
            let zeros = vec![0; usize::try_from(longer - self.length).map_err(std::io::Error::other)?];
            self.backend.write(self.length, &zeros)?;
            self.length = longer;
        }
        self.backend.write(offset, entry)?;
        if !mutant!("commit-not-synced") {
            self.backend.sync_data()?;
        }
        Ok(())
    }

    fn clear(&mut self) -> Result<(), Fault> {
        self.backend.set_len(0)?;
        self.backend.sync_data()?;
        self.length = 0;
        Ok(())
    }
}

impl Log {
    /// Opens the log of a database and puts what it holds into the database, durably.
    ///
    /// # Errors
    /// Those of the disk; [`Fault::Damaged`] where an entry cannot be read that others follow, or holds what this program
    /// does not know.
    pub(crate) fn recover(files: [Box<dyn StorageBackend>; 2], limit: u64, database: &Database) -> Result<Self, Fault> {
        let [first, second] = files;
        let files = [LogFile::of(first)?, LogFile::of(second)?];
        let (begin, is_unnumbered) = stored(&database.begin_read()?)?;
        if is_unnumbered && files.iter().any(|file| file.length > 0) {
            return Err(unknown(
                "its entries have no numbers: start and stop the program that wrote it, then this one",
            ));
        }
        let mut next = begin;
        let mut contents = [files[0].read()?, files[1].read()?];
        if begin.entry_in(&contents[1]).is_some() {
            contents.swap(0, 1);
        }
        let read = if mutant!("log-not-replayed") { 0 } else { 2 - usize::from(mutant!("turned-log-not-read")) };
        let mut replay = Replay::default();
        for file in &contents[..read] {
            let mut rest = file.as_slice();
            while let Some(entry) = next.entry_in(rest) {
                note(&mut replay, entry.changes)?;
                next = next.next();
                rest = entry.rest;
            }
        }
        if contents[..read].iter().any(|file| next.is_passed_in(file)) && !mutant!("damaged-log-is-cut") {
            return Err(Fault::contradicted("log", next.number, "it cannot be read, and later ones are there"));
        }
        if next != begin || is_unnumbered {
            let transaction = begin_write(database)?;
            replay.write(&transaction)?;
            // What was read may never have reached the disk: a sync that failed leaves it in the system's memory.
            begin_at(transaction, next)?;
            tracing::info!(entries = next.number - begin.number, "write-ahead log replayed into the database");
        }
        Ok(Self { files, current: 0, next, end: 0, limit, room: Vec::with_capacity(USUAL_LEN) })
    }

    /// Says whether so many quarters of a file's limit, at which a checkpoint is due, are full.
    pub(crate) const fn is_filled(&self, quarters: u64) -> bool {
        self.end >= self.limit / 4 * quarters
    }

    /// Says whether nothing was appended since it was turned.
    pub(crate) const fn is_empty(&self) -> bool {
        self.end == 0
    }

    /// Begins to note what a commit changes.
    pub(crate) fn begin(&mut self) -> Changes {
        Changes::in_room_of(std::mem::take(&mut self.room))
    }

    /// Makes a commit durable.
    ///
    /// # Errors
    /// Those of the disk: the commit's outcome is open, and nothing more may be written.
    pub(crate) fn append(&mut self, changes: Changes) -> Result<(), Fault> {
        let mut entry = changes.into_bytes();
        let (head, changes) = entry.split_at_mut(HEAD_LEN);
        let len = u32::try_from(changes.len()).map_err(std::io::Error::other)?;
        let (length, number) = (len.to_be_bytes(), self.next.number.to_be_bytes());
        head.copy_from_slice(&[MAGIC.as_slice(), &length, &number, &self.next.checksum(changes)].concat());
        self.files[self.current].write(self.end, &entry)?;
        (self.next, self.end) = (self.next.next(), self.end + entry.len() as u64);
        self.take_back(entry);
        Ok(())
    }

    /// Takes back the room of a commit that changes nothing.
    pub(crate) fn drop_empty(&mut self, changes: Changes) {
        self.take_back(changes.into_bytes());
    }

    fn take_back(&mut self, room: Vec<u8>) {
        if room.capacity() <= ROOM_MAX {
            self.room = room;
        }
    }

    /// Goes on at the start of the other file, whose rows are all in the database; those of this one may go there now.
    /// Returns where the log begins once they have ([`begin_at`]).
    pub(crate) const fn rotate(&mut self) -> Lsn {
        (self.current, self.end) = (1 - self.current, 0);
        self.next
    }

    /// Leaves no byte of a log whose rows are all in the database.
    ///
    /// # Errors
    /// Those of the disk.
    pub(crate) fn clear(&mut self) -> Result<(), Fault> {
        self.files.iter_mut().try_for_each(LogFile::clear)
    }
}

/// Makes a transaction durable in the database, which holds all that the log does up to its turn: there it begins now.
///
/// # Errors
/// Those of the disk; the log still holds what it held, and nothing more may be written.
pub(crate) fn begin_at(mut transaction: WriteTransaction, turn: Lsn) -> Result<(), Fault> {
    if !mutant!("log-place-not-stored") {
        single::store(&mut transaction.open_table(META)?, meta::LOG, &turn.to_bytes())?;
    }
    transaction.set_durability(Durability::Immediate)?;
    transaction.commit()?;
    Ok(())
}

/// Gives a copy of a store a log of its own: entries that follow the original do not follow the copy.
pub(crate) fn part_ways(transaction: &WriteTransaction, why: &[u8]) -> Result<(), Fault> {
    let mut names = transaction.open_table(META)?;
    let (before, _) = Lsn::from_bytes(single::stored(&names, meta::LOG)?.as_deref())?;
    let own = Lsn { log: digest(&[&before.log, why]), ..before };
    single::store(&mut names, meta::LOG, &own.to_bytes())
}

fn stored(snapshot: &ReadTransaction) -> Result<(Lsn, bool), Fault> {
    Lsn::from_bytes(single::stored(&snapshot.open_table(META)?, meta::LOG)?.as_deref())
}

fn digest(parts: &[&[u8]]) -> Digest {
    let whole: [u8; 32] = parts.iter().fold(Sha256::new(), |sum, part| sum.chain_update(part)).finalize().into();
    let mut digest = [0; DIGEST_LEN];
    digest.copy_from_slice(&whole[..DIGEST_LEN]);
    digest
}

fn note<'l>(replay: &mut Replay<'l>, changes: &'l [u8]) -> Result<(), Fault> {
    for row in rows(changes) {
        let Row { table, key, value } = row?;
        if !replay.note(table, key, value) {
            return Err(unknown(&format!("there is no table {table}, or no such row in it")));
        }
    }
    Ok(())
}

fn unknown(what: &str) -> Fault {
    Fault::contradicted("log", "entry", what)
}

/// A row as an entry has it.
struct Row<'b> {
    table: &'b str,
    key: &'b [u8],
    /// None where it is removed.
    value: Option<&'b [u8]>,
}

/// Returns the rows of an entry.
fn rows(mut changes: &[u8]) -> impl Iterator<Item = Result<Row<'_>, Fault>> {
    std::iter::from_fn(move || {
        if changes.is_empty() {
            return None;
        }
        let mut part = || -> Option<Option<&[u8]>> {
            let (length, rest) = changes.split_first_chunk()?;
            let length = u32::from_be_bytes(*length);
            let (part, rest) = if length == REMOVED { (None, rest) } else { split(rest, length)? };
            changes = rest;
            Some(part)
        };
        let (Some(Some(table)), Some(Some(key)), Some(value)) = (part(), part(), part()) else {
            changes = &[];
            return Some(Err(unknown("a change is cut short")));
        };
        let table = std::str::from_utf8(table).map_err(|_| unknown("a table's name is no text"));
        Some(table.map(|table| Row { table, key, value }))
    })
}

fn split(bytes: &[u8], length: u32) -> Option<(Option<&[u8]>, &[u8])> {
    let (part, rest) = bytes.split_at_checked(length as usize)?;
    Some((Some(part), rest))
}
