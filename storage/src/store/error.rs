//! Errors of reading and opening a store.

use std::{io, path::PathBuf};

use futures_util::future::BoxFuture;

use crate::store::report::Report;

/// A failed read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The store is unreachable. Retry later.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// The database file or its disk failed. The process should exit and restart.
    #[error("the store cannot be read: {0}")]
    Failed(String),
    /// A record does not decode.
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

/// The database, under its directory.
pub const FILE_NAME: &str = "hivetill.redb";

/// Why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has it open.
    #[error("{} is in use by another process", .0.display())]
    Locked(PathBuf),
    /// This process may not read or write it.
    #[error("permission denied: cannot read and write {}", .0.display())]
    Permission(PathBuf),
    /// It is not a database, or it is damaged.
    #[error("the database is corrupt: {0}")]
    Corrupt(String),
    /// It is the database of another program.
    #[error("the file is the database of another program")]
    Foreign,
    /// A newer Hivetill wrote it.
    #[error("the store has schema {found}, and this version knows {known}: use a newer version")]
    SchemaNewer {
        /// The schema version of the store.
        found: u32,
        /// The newest schema version that this program supports.
        known: u32,
    },
    /// There is no store.
    #[error("there is no store at {}", .0.display())]
    Missing(PathBuf),
    /// There is no store, and creating one was not requested.
    #[error(
        "there is no store at {}: mount its disk, or restore a backup, if there should be one; `hivetill admin` and \
         `hivetill serve --init` create a new one", .0.display()
    )]
    NotMade(PathBuf),
    /// There is the write-ahead log of a store whose database is missing.
    #[error(
        "{} contains the write-ahead log of a store whose database {FILE_NAME} is gone: put the database back, or restore a \
         backup", .0.display()
    )]
    LogOnly(PathBuf),
    /// A file exists already and is not overwritten.
    #[error("{} already exists", .0.display())]
    Exists(PathBuf),
    /// The disk is full.
    #[error("disk full: {}", .0.display())]
    Full(PathBuf),
    /// The verification has findings.
    #[error("{} findings, first: {}", .0.finding_count, .0.findings.first().map_or("?", String::as_str))]
    Unsound(Box<Report>),
    /// The secrets are sealed with a master key that was not given.
    #[error("the store is sealed with {}", if *is_given { "another master key" } else { "a master key that is missing: copy the file `master-key` of its gateway into the data directory, or set `master_key_file`" })]
    MasterKey {
        /// Whether a master key was given.
        is_given: bool,
    },
    /// The file system returned an error.
    #[error("cannot open {}: {error}", path.display())]
    Io {
        /// The path that was to be opened or created.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// The URL of the database cannot be used.
    #[error("the URL of the database is invalid: {0}")]
    Address(String),
    /// No server responds.
    #[error("the database cannot be reached: {0}")]
    Unreachable(String),
    /// The server refuses user or password.
    #[error("the database at {address} refuses the login: {why}")]
    Authentication {
        /// The URL, without the password.
        address: String,
        /// The server's reason.
        why: String,
    },
    /// The server has no such database.
    #[error("there is no such database at {address}: {why}. Create it with `createdb`")]
    NoDatabase {
        /// The URL, without the password.
        address: String,
        /// The server's reason.
        why: String,
    },
    /// The server is a standby, or accepts no writes for another reason.
    #[error(
        "the database at {0} accepts no writes: it is a standby or set to read-only. List the primary's host in the URL"
    )]
    ReadOnly(String),
    /// The server is older than what is supported.
    #[error("the server is PostgreSQL {found}; version {oldest} or newer is required")]
    ServerTooOld {
        /// Its version.
        found: String,
        /// The oldest supported major version.
        oldest: i32,
    },
    /// The user lacks a privilege.
    #[error("the database's user lacks a privilege: {0}")]
    Privilege(String),
    /// No encrypted connection was possible.
    #[error("no encrypted connection to the database: {0}")]
    Tls(String),
    /// The database has no schema of Hivetill, or an older one.
    #[error("the database has schema level {found}, and this version needs {known}: run `hivetill migrate`")]
    SchemaOlder {
        /// The level of the database; 0 for an empty one.
        found: u32,
        /// The level that this program needs.
        known: u32,
    },
    /// The database acknowledges commits before they are durable.
    #[error(
        "the database loses acknowledged commits in a crash or a failover: {0}. Set it to on for this database and its user"
    )]
    NotDurable(String),
    /// Engines use the database.
    #[error("the database at {address} is in use by {engines} engines: stop them first")]
    EnginesRunning {
        /// The URL, without the password.
        address: String,
        /// Number of engines with a lease.
        engines: u64,
    },
    /// A database that must be empty has rows.
    #[error(
        "the database at {address} is not empty (rows in {tables}): use a new database, or drop this one and create it again"
    )]
    NotEmpty {
        /// The URL, without the password.
        address: String,
        /// The tables that have rows.
        tables: String,
    },
    /// A reconnection reached another database than before.
    #[error("the hosts of {0} are different databases: all of them must belong to one cluster")]
    OtherInstallation(String),
    /// The database or its disk failed.
    #[error("the store cannot be opened: {0}")]
    Failed(String),
}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

/// The result of a read from one consistent snapshot, which is released before the result is returned.
pub type Read<'a, T> = BoxFuture<'a, Result<T, ReadError>>;
