//! Options of the embedded store.

use crate::embedded::commit::committer::CommitMode;

/// How a store is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Memory for pages of the database, bytes.
    pub cache_bytes: usize,
    /// Bytes the log in front of the database gets long before its rows are written where they belong. A longer one
    /// costs less writing and, after a crash, more reading.
    pub log_bytes: u64,
    /// Where commits run.
    pub mode: CommitMode,
    /// Whether a store is made where there is none. A disk that is not mounted looks like one.
    pub may_create: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            cache_bytes: 64 * 1024 * 1024,
            log_bytes: 16 * 1024 * 1024,
            mode: CommitMode::default(),
            may_create: true,
        }
    }
}
