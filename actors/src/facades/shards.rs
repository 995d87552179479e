//! Small lists in the store, each divided into notes that are replaced by compare-and-set.

/// Number of notes of a list.
pub(super) const SHARDS: usize = 16;

/// The notes of dashboard sessions, by the first byte of their ids.
pub(super) const SESSIONS: [&str; SHARDS] = [
    "dashboard sessions 0",
    "dashboard sessions 1",
    "dashboard sessions 2",
    "dashboard sessions 3",
    "dashboard sessions 4",
    "dashboard sessions 5",
    "dashboard sessions 6",
    "dashboard sessions 7",
    "dashboard sessions 8",
    "dashboard sessions 9",
    "dashboard sessions a",
    "dashboard sessions b",
    "dashboard sessions c",
    "dashboard sessions d",
    "dashboard sessions e",
    "dashboard sessions f",
];

/// The notes of clients that sent invalid API keys, by their last byte.
pub(super) const LOCKOUTS: [&str; SHARDS] = [
    "lockouts 0",
    "lockouts 1",
    "lockouts 2",
    "lockouts 3",
    "lockouts 4",
    "lockouts 5",
    "lockouts 6",
    "lockouts 7",
    "lockouts 8",
    "lockouts 9",
    "lockouts a",
    "lockouts b",
    "lockouts c",
    "lockouts d",
    "lockouts e",
    "lockouts f",
];

/// Returns the note of a list that has the entries with this byte.
pub(super) fn note_of(list: &[&'static str; SHARDS], byte: u8) -> &'static str {
    list[usize::from(byte) % SHARDS]
}

/// Reads the fields of a stored list, one after the other.
pub(super) struct Fields<'b>(pub(super) &'b [u8]);

impl<'b> Fields<'b> {
    pub(super) fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*field)
    }

    pub(super) fn take_slice(&mut self, length: usize) -> Option<&'b [u8]> {
        let (field, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(field)
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
