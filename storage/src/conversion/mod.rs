//! Copies of a store in a store of the other kind: an embedded store in a database, and a database in an embedded store.

pub(crate) mod contents;
pub(crate) mod from_embedded;
pub(crate) mod from_postgres;
pub(crate) mod stream;
pub(crate) mod to_embedded;
pub(crate) mod to_postgres;

/// The progress of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The table that is being read.
    pub table: &'static str,
    /// Rows read so far, of all tables.
    pub rows: u64,
    /// Rows to read, of all tables.
    pub expected: u64,
}

/// The result of a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copied {
    /// Rows read.
    pub rows: u64,
    /// The report of the verification of the copy; none if it was not requested.
    pub report: Option<crate::store::report::Report>,
}

/// Receives the progress of a copy.
pub type Watcher<'w> = &'w mut (dyn FnMut(Progress) + Send);
