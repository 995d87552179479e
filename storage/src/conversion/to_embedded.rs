//! Copies a database into a new embedded store, or reads it as one.

use std::path::Path;

use super::{Copied, Watcher, contents::Contents, from_postgres};
use crate::{
    embedded::maintenance::backup::{Idle, Row},
    postgres::{address::Address, connection::Connection, inspection::refuse_running},
    store::error::OpenError,
};

/// Copies a database into a new store in a directory. The store gets its name when it is complete: an interrupted copy leaves none.
/// With `verifies`, it must be sound, and is compared with the database first.
///
/// # Errors
/// [`OpenError::EnginesRunning`], [`OpenError::Exists`], [`OpenError::Unsound`]; see [`OpenError`].
pub async fn copy_to_embedded(
    address: &Address,
    data: &Path,
    verifies: bool,
    watch: Watcher<'_>,
) -> Result<Copied, OpenError> {
    let (mut connection, _) = Connection::open_checked(address, None).await?;
    let idle = Idle::take(data)?;
    let mut copy = idle.begin_store()?;
    connection.begin_maintenance("REPEATABLE READ").await?;
    connection.lock_tables().await?;
    refuse_running(&connection, address).await?;
    let expected = from_postgres::count(&connection).await?;
    let rows = from_postgres::each_row(&connection, expected, &mut |row: Result<Row, OpenError>| copy.put(row?), watch)
        .await?;
    let mut report = copy.complete()?;
    if verifies {
        let expected = Contents::of_postgres(&connection).await?;
        expected.compare(&copy.with_snapshot(Contents::of_embedded)?, &mut report);
    }
    if verifies && !report.is_sound() {
        return Err(OpenError::Unsound(Box::new(report)));
    }
    copy.install()?;
    idle.give_to_owner()?;
    // Ends the locks; nothing was written.
    connection.run("ROLLBACK").await?;
    Ok(Copied { rows, report: Some(report).filter(|_| verifies) })
}

/// Passes every row of a database, as an embedded store has it, to `take`, and the error of each record that does not decode. Engines
/// may use the database: all rows are of one snapshot.
///
/// # Errors
/// See [`OpenError`]; any error that `take` returns.
pub async fn read_database(
    address: &Address,
    mut take: impl FnMut(Result<Row, OpenError>) -> Result<(), OpenError> + Send,
) -> Result<(), OpenError> {
    let (mut connection, _) = Connection::open_checked(address, None).await?;
    connection.begin_maintenance("REPEATABLE READ").await?;
    each_row(&connection, &mut take).await
}

/// Passes every row in the open transaction.
pub(crate) async fn each_row(
    connection: &Connection,
    receiver: &mut dyn from_postgres::Receiver,
) -> Result<(), OpenError> {
    from_postgres::each_row(connection, 0, receiver, &mut |_| {}).await?;
    Ok(connection.run("ROLLBACK").await?)
}
