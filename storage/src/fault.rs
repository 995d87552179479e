//! What can go wrong below the `Store`: the disk, or what is on it.

use crate::{CommitError, ReadError, record::Damage};

/// A failure that no caller can do anything about.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    /// The database or its disk failed.
    #[error("{0}")]
    Disk(String),
    /// A record does not decode, or contradicts another.
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
    /// Returns the fault of a record whose bytes are wrong.
    pub(crate) fn damaged(table: &'static str, key: impl ToString) -> impl FnOnce(Damage) -> Self {
        move |damage| Self::contradicted(table, key, damage)
    }

    /// Returns the fault of a record that cannot be what it is.
    pub(crate) fn contradicted(table: &'static str, key: impl ToString, why: impl ToString) -> Self {
        Self::Damaged { table, key: key.to_string(), why: why.to_string() }
    }
}

macro_rules! from_redb {
    ($($error:ty),+) => {$(
        impl From<$error> for Fault {
            fn from(error: $error) -> Self {
                Self::Disk(error.to_string())
            }
        }
    )+};
}

from_redb!(redb::StorageError, redb::TableError, redb::TransactionError, redb::CommitError, redb::SetDurabilityError);

impl From<Fault> for ReadError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Disk(why) => Self::Failed(why),
            Fault::Damaged { table, key, why } => Self::Damaged { table, key, why },
        }
    }
}

impl From<Fault> for CommitError {
    fn from(fault: Fault) -> Self {
        Self::Unknown(fault.to_string())
    }
}
