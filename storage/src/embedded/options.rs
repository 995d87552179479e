//! Options of the embedded store.

use crate::embedded::commit::committer::CommitMode;

/// Options for opening a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Page cache of the database, bytes.
    pub cache_bytes: usize,
    /// Size of a WAL segment at which a checkpoint starts, bytes. A larger one reduces writes to the database and
    /// increases recovery time after a crash.
    pub log_bytes: u64,
    /// Where commits run.
    pub mode: CommitMode,
    /// Whether to create a store if there is none. An unmounted disk looks like a missing store.
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
