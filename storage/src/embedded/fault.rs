//! Internal failures of the embedded store: of the disk, or of the stored data.

use crate::{
    batch::CommitError,
    record::wire::Damage,
    store::error::{OpenError, ReadError},
};

/// A failure that the caller cannot resolve.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    /// The database or its disk failed.
    #[error("{0}")]
    Disk(String),
    /// The disk is full.
    #[error("{0}")]
    Full(String),
    /// A record does not decode, or contradicts another record.
    #[error("the {table} record {key} is damaged: {why}")]
    Damaged {
        /// The table.
        table: &'static str,
        /// The record's key.
        key: String,
        /// What is wrong with it.
        why: String,
    },
}

impl Fault {
    /// Returns a function that makes a fault of a record that does not decode.
    pub(crate) fn damaged(table: &'static str, key: impl ToString) -> impl FnOnce(Damage) -> Self {
        move |damage| Self::inconsistent(table, key, damage)
    }

    /// Returns the fault of a record that is inconsistent.
    pub(crate) fn inconsistent(table: &'static str, key: impl ToString, why: impl ToString) -> Self {
        Self::Damaged { table, key: key.to_string(), why: why.to_string() }
    }
}

impl Fault {
    fn of(error: redb::Error) -> Self {
        match error {
            redb::Error::Io(error) if is_full(error.kind()) => Self::Full(error.to_string()),
            other => Self::Disk(other.to_string()),
        }
    }
}

/// Returns whether an error of the file system means that the disk is full.
pub(crate) const fn is_full(kind: std::io::ErrorKind) -> bool {
    use std::io::ErrorKind;
    matches!(kind, ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge)
}

macro_rules! from_redb {
    ($($error:ty),+) => {$(
        impl From<$error> for Fault {
            fn from(error: $error) -> Self {
                Self::of(error.into())
            }
        }
    )+};
}

impl From<std::io::Error> for Fault {
    fn from(error: std::io::Error) -> Self {
        Self::of(redb::Error::Io(error))
    }
}

from_redb!(
    redb::StorageError,
    redb::TableError,
    redb::TransactionError,
    redb::CommitError,
    redb::CompactionError,
    redb::SetDurabilityError
);

impl From<Fault> for ReadError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Disk(why) | Fault::Full(why) => Self::Failed(why),
            Fault::Damaged { table, key, why } => Self::Damaged { table, key, why },
        }
    }
}

impl From<Fault> for CommitError {
    fn from(fault: Fault) -> Self {
        Self::Unknown(fault.to_string())
    }
}

impl From<Fault> for OpenError {
    fn from(fault: Fault) -> Self {
        match ReadError::from(fault) {
            ReadError::Failed(why) | ReadError::Unavailable(why) => Self::Failed(why),
            damaged @ ReadError::Damaged { .. } => Self::Corrupt(damaged.to_string()),
        }
    }
}
