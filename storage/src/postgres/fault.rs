//! Errors of statements, by their remedy.

use tokio_postgres::{
    Error,
    error::{DbError, Severity, SqlState},
};

use crate::{
    record::wire::Damage,
    store::error::{OpenError, ReadError},
};

/// The failure of a statement.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Fault {
    /// The connection is lost or the server shuts down: the outcome of a statement is unknown.
    #[error("{0}")]
    Lost(String),
    /// The statement took longer than this program waits: its outcome is unknown, and its connection is still busy.
    #[error("{0}")]
    TimedOut(String),
    /// A newer program migrated the database to a schema that this program cannot use: nothing was written.
    #[error("{0}")]
    NewerSchema(String),
    /// The server refused the statement for now: it was not executed.
    #[error("{0}")]
    Busy(String),
    /// The connection cannot execute the statement, which another one can: nothing was executed.
    #[error("{0}")]
    Unusable(String),
    /// Another transaction was in the way: nothing was written.
    #[error("{0}")]
    Contended(String),
    /// A guard of the statement found another row than was read, or a unique key is taken: nothing was written.
    #[error("{0}")]
    Outdated(String),
    /// The server cannot execute the statement.
    #[error("{0}")]
    Failed(String),
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
        move |damage| Self::inconsistent(table, key, damage)
    }

    /// Returns the fault of a record that cannot be what it is.
    pub(crate) fn inconsistent(table: &'static str, key: impl ToString, why: impl ToString) -> Self {
        Self::Damaged { table, key: key.to_string(), why: why.to_string() }
    }
}

/// Beginnings of the driver's errors about parameters and results.
const OURS: [&str; 5] = ["error serializing", "error deserializing", "error encoding", "expected ", "invalid "];

/// The SQLSTATE of the logarithm of 0, by which a commit fails if the schema is too new for this program.
const NEWER_SCHEMA: &str = "2201E";

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        let why = text(&error);
        let Some(code) = error.code() else {
            let is_ours = OURS.iter().any(|beginning| why.starts_with(beginning));
            return if is_ours { Self::Failed(why) } else { Self::Lost(why) };
        };
        // The server ends the connection, perhaps while it writes a commit to the disk.
        let severity = error.as_db_error().and_then(DbError::parsed_severity);
        if matches!(severity, Some(Severity::Fatal | Severity::Panic)) {
            return Self::Lost(why);
        }
        // Classes of SQLSTATE: https://www.postgresql.org/docs/current/errcodes-appendix.html
        match (&code.code()[..2], code) {
            (
                _,
                &SqlState::T_R_SERIALIZATION_FAILURE | &SqlState::T_R_DEADLOCK_DETECTED | &SqlState::LOCK_NOT_AVAILABLE,
            ) => Self::Contended(why),
            // The guards of a commit divide by zero.
            (_, &SqlState::UNIQUE_VIOLATION | &SqlState::DIVISION_BY_ZERO) => Self::Outdated(why),
            _ if code.code() == NEWER_SCHEMA => {
                Self::NewerSchema("a newer version migrated the database: upgrade this engine".to_owned())
            }
            // The server is a standby now, or has forgotten the prepared statement or its types.
            (
                _,
                &SqlState::READ_ONLY_SQL_TRANSACTION
                | &SqlState::INVALID_SQL_STATEMENT_NAME
                | &SqlState::DUPLICATE_PSTATEMENT
                | &SqlState::FEATURE_NOT_SUPPORTED,
            ) => Self::Unusable(why),
            // The server rolled the statement back: it was canceled, or the disk was full.
            (_, &SqlState::QUERY_CANCELED) | ("53", _) => Self::Busy(why),
            // The outcome of a commit that waits for a standby is unknown when the server shuts down.
            ("08" | "57" | "58", _) | (_, &SqlState::T_R_STATEMENT_COMPLETION_UNKNOWN) => Self::Lost(why),
            _ => Self::Failed(why),
        }
    }
}

/// Returns an error with its causes; the server's own message has no values of the statement.
pub(crate) fn text(error: &Error) -> String {
    match error.as_db_error() {
        Some(error) => format!("{} ({})", error.message(), error.code().code()),
        None => {
            let mut text = error.to_string();
            let mut cause = std::error::Error::source(error);
            while let Some(error) = cause {
                text = format!("{text}: {error}");
                cause = error.source();
            }
            text
        }
    }
}

impl From<Fault> for ReadError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Damaged { table, key, why } => Self::Damaged { table, key, why },
            Fault::Lost(why)
            | Fault::TimedOut(why)
            | Fault::Busy(why)
            | Fault::Unusable(why)
            | Fault::Contended(why)
            | Fault::NewerSchema(why) => Self::Unavailable(why),
            Fault::Failed(why) | Fault::Outdated(why) => Self::Failed(why),
        }
    }
}

impl From<Fault> for OpenError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Lost(why)
            | Fault::TimedOut(why)
            | Fault::Busy(why)
            | Fault::Unusable(why)
            | Fault::Contended(why)
            | Fault::NewerSchema(why) => Self::Unreachable(why),
            damaged @ Fault::Damaged { .. } => Self::Corrupt(damaged.to_string()),
            Fault::Failed(why) | Fault::Outdated(why) => Self::Failed(why),
        }
    }
}
