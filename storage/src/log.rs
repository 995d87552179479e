//! The log in front of the database: a group of batches is durable once what it changes stands here, written at once and
//! synced once.
//!
//! redb by itself writes some seventeen pages, scattered, for one payment. So commits are appended here, and the rows they
//! change stay in memory ([`crate::memtable`]). When the log is full they are written into the database together, each as
//! it was left last: a checkpoint. After a crash the rows are put into the database from here: they are whole values, not
//! differences, so to put them twice is to put them once.
//!
//! The log has two files. While a checkpoint writes what one of them holds, commits go on in the other.
//!
//! An entry's checksum covers that of the entry before it, the first one's of a file that of the last of the other file, and
//! the first one's of all what the last checkpoint stored in the database: what an earlier round left in a file never
//! passes for an entry of this one.

use std::cell::RefCell;

use engine::mutant;
use redb::{Database, Durability, ReadTransaction, ReadableDatabase, ReadableTable, StorageBackend, WriteTransaction};
use sha2::{Digest, Sha256};

use crate::{
    fault::Fault,
    tables::{META, Tables, meta},
};

/// Bytes by which the file grows: a sync that also records a new length costs more, so there are few of them.
const GROWTH: u64 = 64 * 1024;
/// Bytes of an entry before its changes: their length, and the checksum.
const HEAD_LEN: usize = LENGTH_LEN + CHAIN_LEN;
const LENGTH_LEN: usize = 4;
const CHAIN_LEN: usize = 16;
/// Stands for the length of a value where a row is removed.
const REMOVED: u32 = u32::MAX;

/// The checksum of an entry, which the next one builds on.
pub(crate) type Chain = [u8; CHAIN_LEN];

/// What a commit changes, row by row, in the form of the log.
#[derive(Debug)]
pub(crate) struct Changes(RefCell<Vec<u8>>);

impl Default for Changes {
    fn default() -> Self {
        Self(RefCell::new(vec![0; HEAD_LEN]))
    }
}

impl Changes {
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
    /// The checksum of the newest entry; before the first, what the checkpoint stored.
    chain: Chain,
    /// Where the next entry goes, bytes.
    end: u64,
    /// How long a file gets before a checkpoint, bytes.
    limit: u64,
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
    /// Those of the disk; [`Fault::Damaged`] where it holds what this program does not know.
    pub(crate) fn recover(files: [Box<dyn StorageBackend>; 2], limit: u64, database: &Database) -> Result<Self, Fault> {
        let [first, second] = files;
        let files = [LogFile::of(first)?, LogFile::of(second)?];
        let chain = chain_of(&database.begin_read()?)?;
        let mut log = Self { files, current: 0, chain, end: 0, limit };
        let transaction = database.begin_write()?;
        let mut tables = Tables::of(&transaction);
        let mut entries = 0_u64;
        let read = if mutant!("log-not-replayed") { 0 } else { 2 - usize::from(mutant!("turned-log-not-read")) };
        for file in log.in_order()?.iter().take(read) {
            let mut rest = file.as_slice();
            while let Some((changes, after)) = next_entry(&mut log.chain, rest) {
                replay(&mut tables, changes)?;
                entries += 1;
                rest = after;
            }
            log.chain = turned(&log.chain);
        }
        drop(tables);
        if entries == 0 {
            log.chain = chain;
            transaction.abort()?;
        } else {
            // What was read may never have reached the disk: a sync that failed leaves it in the system's memory.
            begin_at(transaction, log.chain)?;
            tracing::info!(entries, "what the log held is in the database now");
        }
        Ok(log)
    }

    /// Reads the files, first the one that begins where the last checkpoint ended.
    fn in_order(&self) -> Result<[Vec<u8>; 2], Fault> {
        let [first, second] = [self.files[0].read()?, self.files[1].read()?];
        let is_second_first = next_entry(&mut self.chain.clone(), &second).is_some();
        Ok(if is_second_first { [second, first] } else { [first, second] })
    }

    /// Says whether so many quarters of a file's limit, at which a checkpoint is due, are full.
    pub(crate) const fn is_filled(&self, quarters: u64) -> bool {
        self.end >= self.limit / 4 * quarters
    }

    /// Says whether nothing was appended since it was turned.
    pub(crate) const fn is_empty(&self) -> bool {
        self.end == 0
    }

    /// Makes a commit durable.
    ///
    /// # Errors
    /// Those of the disk: the commit's fate is open, and nothing more may be written.
    pub(crate) fn append(&mut self, changes: Changes) -> Result<(), Fault> {
        let mut entry = changes.into_bytes();
        let chain = checksum(&self.chain, &entry[HEAD_LEN..]);
        let len = u32::try_from(entry.len() - HEAD_LEN).map_err(std::io::Error::other)?;
        entry[..LENGTH_LEN].copy_from_slice(&len.to_be_bytes());
        entry[LENGTH_LEN..HEAD_LEN].copy_from_slice(&chain);
        self.files[self.current].write(self.end, &entry)?;
        (self.chain, self.end) = (chain, self.end + entry.len() as u64);
        Ok(())
    }

    /// Goes on at the start of the other file, whose rows are all in the database; those of this one may go there now.
    /// Returns where the log begins once they have ([`begin_at`]).
    pub(crate) fn turn(&mut self) -> Chain {
        (self.current, self.chain, self.end) = (1 - self.current, turned(&self.chain), 0);
        self.chain
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
pub(crate) fn begin_at(mut transaction: WriteTransaction, turn: Chain) -> Result<(), Fault> {
    if !mutant!("log-chain-not-stored") {
        transaction.open_table(META)?.insert(meta::LOG, turn.as_slice())?;
    }
    transaction.set_durability(Durability::Immediate)?;
    // A file that says which of its pages are free opens at once after a crash. It costs a second sync, but seldom.
    transaction.set_quick_repair(true);
    transaction.commit()?;
    Ok(())
}

/// Gives a copy of a store a log of its own: entries that follow the original do not follow the copy.
pub(crate) fn part_ways(transaction: &WriteTransaction, why: &[u8]) -> Result<(), Fault> {
    let mut names = transaction.open_table(META)?;
    let before = read_chain(names.get(meta::LOG)?.map(|bytes| bytes.value().to_vec()))?;
    names.insert(meta::LOG, checksum(&before, why).as_slice())?;
    Ok(())
}

fn chain_of(snapshot: &ReadTransaction) -> Result<Chain, Fault> {
    read_chain(snapshot.open_table(META)?.get(meta::LOG)?.map(|bytes| bytes.value().to_vec()))
}

/// A store that never saw a checkpoint begins with zeros.
fn read_chain(stored: Option<Vec<u8>>) -> Result<Chain, Fault> {
    let Some(bytes) = stored else { return Ok([0; CHAIN_LEN]) };
    bytes.try_into().map_err(|_| Fault::contradicted("meta", meta::LOG, "a checksum has 16 bytes"))
}

/// Returns what the first entry of a file builds on, after the last one of the other.
fn turned(chain: &Chain) -> Chain {
    checksum(chain, b"turn")
}

fn checksum(before: &Chain, changes: &[u8]) -> Chain {
    let digest: [u8; 32] = Sha256::new().chain_update(before).chain_update(changes).finalize().into();
    let mut chain = [0; CHAIN_LEN];
    chain.copy_from_slice(&digest[..CHAIN_LEN]);
    chain
}

/// Returns the changes of the entry that follows, and what comes after it; none where the log ends.
fn next_entry<'b>(chain: &mut Chain, bytes: &'b [u8]) -> Option<(&'b [u8], &'b [u8])> {
    let (length, rest) = bytes.split_first_chunk::<LENGTH_LEN>()?;
    let (found, rest) = rest.split_first_chunk::<CHAIN_LEN>()?;
    let (changes, rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
    if changes.is_empty() || checksum(chain, changes) != *found {
        return None;
    }
    *chain = *found;
    Some((changes, rest))
}

fn replay(tables: &mut Tables<'_>, changes: &[u8]) -> Result<(), Fault> {
    for row in rows(changes) {
        let Row { table, key, value } = row?;
        let is_known = match value {
            Some(value) => tables.put_row(table, key, value)?,
            None => tables.remove_row(table, key)?,
        };
        if !is_known {
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
            let (length, rest) = changes.split_first_chunk::<LENGTH_LEN>()?;
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
