//! Copies an embedded store into an empty database: in one transaction, so that an interrupted copy leaves the database as it was.

use std::{pin::Pin, sync::Arc};

use tokio::sync::{mpsc, oneshot};
use tokio_postgres::{
    binary_copy::BinaryCopyInWriter,
    types::{ToSql, Type},
};

use super::{Copied, Progress, Watcher, contents::Contents, from_embedded};
use crate::{
    embedded::{maintenance::backup::Idle, wal::snapshot::Snapshot},
    postgres::{
        address::Address,
        connection::Connection,
        fault::Fault,
        schema,
        table::TABLE_NAMES,
        values::{Cell, Id},
        verify,
        whole::Shape,
    },
    store::{error::OpenError, report::Report},
};

/// Rows that are passed on at once.
const CHUNK: usize = 1_000;
/// Chunks that wait to be written.
const CHUNKS: usize = 8;

/// Copies the store of a locked directory into an empty database, whose schema is created if it has none. With `verifies`, the copy is
/// verified and compared with the store before it is committed.
///
/// # Errors
/// [`OpenError::NotEmpty`], [`OpenError::Unsound`]; see [`OpenError`]. The database is unchanged then.
pub async fn copy_to_postgres(
    source: &Arc<Idle>,
    address: &Address,
    verifies: bool,
    watch: Watcher<'_>,
) -> Result<Copied, OpenError> {
    let mut connection = Connection::open(address).await?;
    refuse_filled(&connection, address).await?;
    // Each statement sees what was committed before it, and no other transaction writes once the tables are locked.
    connection.begin_maintenance("READ COMMITTED").await?;
    let copied = copy(&connection, source, address, verifies, watch).await;
    match copied {
        Ok(copied) => {
            connection.run("COMMIT").await?;
            Ok(copied)
        }
        Err(error) => {
            if let Err(fault) = connection.run("ROLLBACK").await {
                // The cause is returned; a lost connection rolls back, too.
                tracing::debug!(%fault, "cannot roll the copy back: {fault}");
            }
            Err(error)
        }
    }
}

async fn refuse_filled(connection: &Connection, address: &Address) -> Result<(), OpenError> {
    let filled = schema::filled_tables(connection).await?;
    match filled.is_empty() {
        true => Ok(()),
        false => Err(OpenError::NotEmpty { address: address.to_string(), tables: filled.join(", ") }),
    }
}

async fn copy(
    connection: &Connection,
    source: &Arc<Idle>,
    address: &Address,
    verifies: bool,
    watch: Watcher<'_>,
) -> Result<Copied, OpenError> {
    schema::migrate_inside(connection).await?;
    connection.lock_tables().await?;
    // Checked again: now no engine can write.
    refuse_filled(connection, address).await?;
    schema::check(connection).await?;
    let (rows, search_cursor) = write(connection, source, watch).await?;
    complete(connection, search_cursor).await?;
    let report = match verifies {
        true => Some(compare(connection, source).await?),
        false => None,
    };
    Ok(Copied { rows, report })
}

/// What the reading thread passes on.
enum Chunk {
    /// The number of rows, and the last payment in the search index.
    Begin(u64, u128),
    Rows(Shape, Vec<Vec<Cell>>),
}

/// Writes every row; returns the number of rows, and the last payment in the search index.
async fn write(connection: &Connection, source: &Arc<Idle>, watch: Watcher<'_>) -> Result<(u64, u128), OpenError> {
    let (sender, mut chunks) = mpsc::channel(CHUNKS);
    let outcome = on_a_thread(source, move |snapshot| read(snapshot, &sender))?;
    let mut copier = Copier { connection, open: None };
    let (mut expected, mut cursor, mut rows) = (0, 0, 0);
    while let Some(chunk) = chunks.recv().await {
        match chunk {
            Chunk::Begin(count, search_cursor) => (expected, cursor) = (count, search_cursor),
            Chunk::Rows(shape, cells) => {
                copier.write(shape, &cells).await?;
                rows += cells.len() as u64;
                watch(Progress { table: shape.table, rows, expected });
            }
        }
    }
    copier.finish().await?;
    outcome.await.map_err(|_| OpenError::Failed("reading the store panicked".to_owned()))??;
    Ok((rows, cursor))
}

/// Reads the store on a thread of its own.
fn on_a_thread<T: Send + 'static>(
    source: &Arc<Idle>,
    work: impl FnOnce(&Snapshot) -> Result<T, OpenError> + Send + 'static,
) -> Result<oneshot::Receiver<Result<T, OpenError>>, OpenError> {
    let (sender, outcome) = oneshot::channel();
    let source = Arc::clone(source);
    let run = move || {
        let outcome = source.with_snapshot(work);
        // The directory is unlocked when the copy ends, not some time later.
        drop(source);
        drop(sender.send(outcome));
    };
    std::thread::Builder::new().name("copier".to_owned()).spawn(run)?;
    Ok(outcome)
}

fn read(snapshot: &Snapshot, sender: &mpsc::Sender<Chunk>) -> Result<(), OpenError> {
    let send = |chunk| {
        let dropped = |_| OpenError::Failed("the copy was canceled".to_owned());
        sender.blocking_send(chunk).map_err(dropped)
    };
    send(Chunk::Begin(from_embedded::count(snapshot)?, from_embedded::search_cursor(snapshot)?))?;
    let mut waiting: Option<(Shape, Vec<Vec<Cell>>)> = None;
    from_embedded::each_row(snapshot, &mut |shape, cells| {
        let is_next = |(open, rows): &mut (Shape, Vec<_>)| open.table != shape.table || rows.len() >= CHUNK;
        if let Some((shape, rows)) = waiting.take_if(is_next) {
            send(Chunk::Rows(shape, rows))?;
        }
        waiting.get_or_insert_with(|| (shape, Vec::with_capacity(CHUNK))).1.push(cells);
        Ok(())
    })?;
    waiting.map_or(Ok(()), |(shape, rows)| send(Chunk::Rows(shape, rows)))
}

/// Writes rows by `COPY`, one table after the other.
struct Copier<'c> {
    connection: &'c Connection,
    open: Option<(&'static str, Pin<Box<BinaryCopyInWriter>>)>,
}

impl Copier<'_> {
    async fn write(&mut self, shape: Shape, rows: &[Vec<Cell>]) -> Result<(), Fault> {
        if self.open.as_ref().is_some_and(|(table, _)| *table != shape.table) {
            self.finish().await?;
        }
        let writer = match &mut self.open {
            Some((_, writer)) => writer,
            None => {
                let names: Vec<&str> = shape.columns().map(|(name, _)| *name).collect();
                let types: Vec<Type> = shape.columns().map(|(_, kind)| kind.driver_type()).collect();
                let sql = format!("COPY {} ({}) FROM STDIN (FORMAT binary)", shape.table, names.join(", "));
                let sink = self.connection.client().copy_in(sql.as_str()).await?;
                let writer = Box::pin(BinaryCopyInWriter::new(sink, &types));
                &mut self.open.insert((shape.table, writer)).1
            }
        };
        for cells in rows {
            let values: Vec<&(dyn ToSql + Sync)> = cells.iter().map(|cell| cell as &(dyn ToSql + Sync)).collect();
            writer.as_mut().write(&values).await?;
        }
        Ok(())
    }

    async fn finish(&mut self) -> Result<(), Fault> {
        match self.open.take() {
            Some((_, mut writer)) => Ok(writer.as_mut().finish().await.map(drop)?),
            None => Ok(()),
        }
    }
}

/// Notes the payments that are not in the search index, continues the numbers of the audit log, and updates the statistics of the
/// planner.
async fn complete(connection: &Connection, search_cursor: u128) -> Result<(), OpenError> {
    let unindexed = "INSERT INTO commits (id, unindexed_payments) SELECT gen_random_uuid(), array_agg(id) FROM \
                     (SELECT id, row_number() OVER (ORDER BY id) / 200 AS part FROM payments WHERE id > $1) AS p \
                     GROUP BY part";
    connection.query(unindexed, &[&Id(search_cursor)]).await?;
    let numbers =
        "SELECT setval(pg_get_serial_sequence('audit_log', 'seq'), max(seq)) FROM audit_log HAVING count(*) > 0";
    connection.query(numbers, &[]).await?;
    let tables = TABLE_NAMES.join(", ");
    Ok(connection.run(&format!("ANALYZE {tables}")).await?)
}

/// Verifies the copy and compares it with the store.
async fn compare(connection: &Connection, source: &Arc<Idle>) -> Result<Report, OpenError> {
    let expected = on_a_thread(source, Contents::of_embedded)?;
    let mut report = verify::verify(connection).await?;
    let copied = Contents::of_postgres(connection).await?;
    let expected = expected.await.map_err(|_| OpenError::Failed("reading the store panicked".to_owned()))??;
    expected.compare(&copied, &mut report);
    if report.is_sound() { Ok(report) } else { Err(OpenError::Unsound(Box::new(report))) }
}
