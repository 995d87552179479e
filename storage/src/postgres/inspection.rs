//! The state of a database server, as far as payments depend on it.

use std::time::Duration;

use engine::time::Timestamp;
use tokio::time::Instant;

use crate::{
    postgres::{
        address::Address,
        connection::Connection,
        values::{column, unsigned},
    },
    store::error::OpenError,
};

/// The state of a database server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseReport {
    /// Version of the server, such as `15.8`.
    pub version: String,
    /// Number of connected standbys.
    pub standbys: u64,
    /// Whether a commit is acknowledged only when a standby has it.
    pub is_synchronous: bool,
    /// Whether a commit is acknowledged only when it is on the server's disk.
    pub has_fsync: bool,
    /// The server's time.
    pub time: Timestamp,
    /// Duration of one statement.
    pub latency: Duration,
}

/// Reads the state of a server. The number of standbys needs no privilege.
///
/// # Errors
/// [`OpenError::Unreachable`] if the connection is lost.
pub(super) async fn inspect(connection: &Connection) -> Result<DatabaseReport, OpenError> {
    let sql = "SELECT current_setting('server_version'), (SELECT count(*) FROM pg_stat_replication), \
               current_setting('synchronous_standby_names') <> '' \
               AND current_setting('synchronous_commit') NOT IN ('off', 'local'), \
               current_setting('fsync') = 'on', \
               (extract(epoch FROM clock_timestamp()) * 1000)::bigint";
    // Prepared by the first execution.
    connection.one(sql, &[]).await?;
    let begun = Instant::now();
    let row = connection.one(sql, &[]).await?;
    Ok(DatabaseReport {
        version: column(&row, 0)?,
        standbys: unsigned(column(&row, 1)?),
        is_synchronous: column(&row, 2)?,
        has_fsync: column(&row, 3)?,
        time: Timestamp::from_millis(unsigned(column(&row, 4)?)),
        latency: begun.elapsed(),
    })
}

/// Refuses a database that engines use: those that have a lease.
///
/// # Errors
/// [`OpenError::EnginesRunning`]; those of the connection.
pub(crate) async fn refuse_running(connection: &Connection, address: &Address) -> Result<(), OpenError> {
    let row = connection.one("SELECT count(*) FROM engines WHERE until > clock_timestamp()", &[]).await?;
    match unsigned(column(&row, 0)?) {
        0 => Ok(()),
        engines => Err(OpenError::EnginesRunning { address: address.to_string(), engines }),
    }
}
