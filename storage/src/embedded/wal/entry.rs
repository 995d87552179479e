//! Entries of the write-ahead log: numbered, checksummed, encoded as the rows that a commit changes.

use std::cell::RefCell;

use sha2::{Digest as _, Sha256};

use crate::embedded::{fault::Fault, tables::meta};

/// The first bytes of an entry. They locate entries after an unreadable one. Their first byte occurs in no UTF-8 text.
const MAGIC: [u8; 4] = *b"\xf5log";
/// Size of an entry's header, bytes: magic, length of the changes, entry number, checksum.
pub(super) const HEAD_LEN: usize = MAGIC.len() + 4 + 8 + DIGEST_LEN;
const DIGEST_LEN: usize = 16;
/// The length that marks a removed row.
const REMOVED: u32 = u32::MAX;

type Digest = [u8; DIGEST_LEN];

/// Log sequence number: an entry's position in the order of commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lsn {
    /// The identity of the log. A copy of a store has another log identity.
    log: Digest,
    number: u64,
}

impl Lsn {
    /// The first entry of a new store.
    pub(crate) const START: Self = Self { log: [0; DIGEST_LEN], number: 0 };

    /// Encodes the LSN for [`meta::LOG`].
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        [self.log.as_slice(), &self.number.to_be_bytes()].concat()
    }

    /// Decodes an LSN.
    ///
    /// # Errors
    /// [`Fault::Damaged`].
    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Self, Fault> {
        let wrong = || Fault::inconsistent("meta", meta::LOG, "an LSN has 24 bytes");
        let (log, number) = bytes.split_first_chunk().ok_or_else(wrong)?;
        let number = u64::from_be_bytes(number.try_into().map_err(|_| wrong())?);
        Ok(Self { log: *log, number })
    }

    /// Returns the entry number without the identity of the log.
    pub(super) const fn number(self) -> u64 {
        self.number
    }

    pub(super) const fn next(self) -> Self {
        Self { number: self.number + 1, ..self }
    }

    /// Returns the same number in a new log, whose identity is derived from `why`.
    pub(super) fn in_other_log(self, why: &[u8]) -> Self {
        Self { log: digest(&[&self.log, why]), ..self }
    }

    fn checksum(&self, changes: &[u8]) -> Digest {
        digest(&[&self.log, &self.number.to_be_bytes(), changes])
    }

    /// Returns the header of the entry with this number.
    ///
    /// # Errors
    /// The changes exceed 4 GiB.
    pub(super) fn head(&self, changes: &[u8]) -> Result<Vec<u8>, Fault> {
        let length = u32::try_from(changes.len()).map_err(std::io::Error::other)?;
        let (length, number) = (length.to_be_bytes(), self.number.to_be_bytes());
        Ok([MAGIC.as_slice(), &length, &number, &self.checksum(changes)].concat())
    }

    /// Returns the entry with this number if the bytes start with it.
    pub(super) fn entry_in<'b>(&self, bytes: &'b [u8]) -> Option<Entry<'b>> {
        Entry::at_start_of(bytes).filter(|entry| entry.number == self.number && entry.is_of(self))
    }

    /// Returns whether the bytes contain an entry with a higher number.
    pub(super) fn is_passed_in(&self, bytes: &[u8]) -> bool {
        let mut entries = memchr::memmem::find_iter(bytes, &MAGIC).filter_map(|at| Entry::at_start_of(&bytes[at..]));
        entries.any(|entry| entry.number > self.number && entry.is_of(self))
    }
}

/// An entry in a segment.
pub(super) struct Entry<'b> {
    number: u64,
    checksum: Digest,
    pub(super) changes: &'b [u8],
    /// The bytes after the entry.
    pub(super) rest: &'b [u8],
}

impl<'b> Entry<'b> {
    fn at_start_of(bytes: &'b [u8]) -> Option<Self> {
        let (length, rest) = bytes.strip_prefix(&MAGIC)?.split_first_chunk()?;
        let (number, rest) = rest.split_first_chunk()?;
        let (checksum, rest) = rest.split_first_chunk()?;
        let (changes, rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
        Some(Self { number: u64::from_be_bytes(*number), checksum: *checksum, changes, rest })
    }

    /// Returns whether the entry belongs to this log and is complete.
    fn is_of(&self, log: &Lsn) -> bool {
        Lsn { number: self.number, ..*log }.checksum(self.changes) == self.checksum
    }
}

/// Initial capacity of a buffer, bytes. Most commits of one batch fit.
const USUAL_LEN: usize = 4_096;

/// The changed rows of a commit, encoded for the log.
#[derive(Debug)]
pub(crate) struct Changes(RefCell<Vec<u8>>);

impl Default for Changes {
    fn default() -> Self {
        Self::reusing(Vec::with_capacity(USUAL_LEN))
    }
}

impl Changes {
    /// Creates an empty list in a reused buffer.
    pub(super) fn reusing(mut bytes: Vec<u8>) -> Self {
        bytes.clear();
        bytes.resize(HEAD_LEN, 0);
        Self(RefCell::new(bytes))
    }

    /// Records that a row was set or removed.
    pub(crate) fn note(&self, table: &str, key: &[u8], value: Option<&[u8]>) {
        let mut bytes = self.0.borrow_mut();
        put(&mut bytes, table.as_bytes());
        put(&mut bytes, key);
        match value {
            Some(value) => put(&mut bytes, value),
            None => bytes.extend(REMOVED.to_be_bytes()),
        }
    }

    /// Returns whether nothing changes.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.borrow().len() == HEAD_LEN
    }

    /// Returns the buffer: space for the header, then the changes.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0.into_inner()
    }

    /// Returns the names of the tables with changed rows.
    #[cfg(test)]
    pub(crate) fn tables(&self) -> std::collections::BTreeSet<String> {
        let bytes = self.0.borrow();
        let changes = rows(&bytes[HEAD_LEN..]).map(|row| row.expect("it was encoded above").table.to_owned());
        changes.collect()
    }
}

fn put(bytes: &mut Vec<u8>, part: &[u8]) {
    bytes.extend(u32::try_from(part.len()).expect("a row is shorter than 4 GiB").to_be_bytes());
    bytes.extend(part);
}

fn digest(parts: &[&[u8]]) -> Digest {
    let whole: [u8; 32] = parts.iter().fold(Sha256::new(), |sum, part| sum.chain_update(part)).finalize().into();
    let mut digest = [0; DIGEST_LEN];
    digest.copy_from_slice(&whole[..DIGEST_LEN]);
    digest
}

/// Returns the fault of an entry that this version cannot decode.
pub(super) fn unknown(what: &str) -> Fault {
    Fault::inconsistent("log", "entry", what)
}

/// A row of an entry.
pub(super) struct Row<'b> {
    pub(super) table: &'b str,
    pub(super) key: &'b [u8],
    /// `None` if the row is removed.
    pub(super) value: Option<&'b [u8]>,
}

/// Decodes the rows of an entry.
pub(super) fn rows(mut changes: &[u8]) -> impl Iterator<Item = Result<Row<'_>, Fault>> {
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
            return Some(Err(unknown("a change is truncated")));
        };
        let table = std::str::from_utf8(table).map_err(|_| unknown("a table name is not UTF-8"));
        Some(table.map(|table| Row { table, key, value }))
    })
}

fn split(bytes: &[u8], length: u32) -> Option<(Option<&[u8]>, &[u8])> {
    let (part, rest) = bytes.split_at_checked(length as usize)?;
    Some((Some(part), rest))
}
