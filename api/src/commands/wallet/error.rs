//! Why a wallet cannot be used.

use std::path::{Path, PathBuf};

use engine::wallet::Rejection;

/// Why a wallet cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The directory holds no policy.
    #[error("{} contains no wallet: create one with `hivetill wallet --dir {} init --account NAME`", .0.display(), .0.display())]
    Missing(PathBuf),
    /// There is a wallet already.
    #[error("{} already contains a wallet", .0.display())]
    Exists(PathBuf),
    /// The policy cannot be used.
    #[error("the policy {}: {why}", path.display())]
    Policy {
        /// The file.
        path: PathBuf,
        /// The error with its location.
        why: String,
    },
    /// The wallet's ledger cannot be read or written.
    #[error("the wallet's ledger {}: {why}", path.display())]
    Ledger {
        /// The file.
        path: PathBuf,
        /// The cause.
        why: String,
    },
    /// Another process did not release the ledger in time.
    #[error("the wallet's ledger {} is in use by another process", .0.display())]
    Busy(PathBuf),
    /// No entry has this number.
    #[error("the wallet has no entry {0}: `hivetill wallet history` lists them")]
    NoEntry(u64),
    /// The entry's state does not allow the change.
    #[error(transparent)]
    Rejected(#[from] Rejection),
}

impl Error {
    pub(super) fn policy(path: &Path, why: impl Into<String>) -> Self {
        Self::Policy { path: path.to_owned(), why: why.into() }
    }

    pub(super) fn ledger(path: &Path, why: impl std::fmt::Display) -> Self {
        Self::Ledger { path: path.to_owned(), why: why.to_string() }
    }

    /// Returns whether the caller can correct the error.
    pub(in crate::commands) const fn is_usage(&self) -> bool {
        !matches!(self, Self::Ledger { .. } | Self::Busy(_))
    }

    /// Returns the reason for scripts.
    pub(in crate::commands) const fn as_str(&self) -> &'static str {
        match self {
            Self::Missing(_) => "no_wallet",
            Self::Exists(_) => "wallet_exists",
            Self::Policy { .. } => "bad_policy",
            Self::Ledger { .. } => "wallet_ledger_failed",
            Self::Busy(_) => "wallet_busy",
            Self::NoEntry(_) => "no_such_entry",
            Self::Rejected(_) => "not_in_this_state",
        }
    }
}
