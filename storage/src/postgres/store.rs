//! The store in a PostgreSQL database.

use std::{sync::Arc, time::Duration};

use engine::time::Timestamp;
use futures_util::future::BoxFuture;
use tokio::time::Instant;

use crate::{
    batch::{Batch, CommitError, CommitId, Resolution},
    conversion::stream::stream,
    embedded::{maintenance::backup::Rows, metrics::CommitMetrics},
    postgres::{
        address::Address,
        commit::writers::{Shared, Writers, unavailable},
        connection::Connection,
        fault::Fault,
        ids::Ids,
        inspection::{self, DatabaseReport},
        read::search,
        readers::Readers,
        resolve, schema, secrets,
        values::{Id, column, unsigned},
        verify,
    },
    record::vault::{Secrets, Vault},
    store::{
        Store,
        error::{OpenError, Read, ReadError},
        report::{Figures, Report},
    },
};

/// How long an unknown outcome is resolved before its caller retries.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(5);

/// Numbers of connections of one process, which are constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connections {
    /// Connections for commits, one group at a time each.
    pub writers: usize,
    /// Connections for reads.
    pub readers: usize,
}

impl Default for Connections {
    fn default() -> Self {
        Self { writers: 2, readers: 4 }
    }
}

/// A [`Store`] in a PostgreSQL database, which several processes may have open.
#[derive(Debug)]
pub struct PostgresStore {
    shared: Arc<Shared>,
    writers: Writers,
    pub(crate) readers: Readers,
}

impl PostgresStore {
    /// Applies the migrations that a database lacks and returns their names.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub async fn migrate(address: &Address) -> Result<Vec<&'static str>, OpenError> {
        schema::migrate(&Connection::open(address).await?).await
    }

    /// Checks that a database can be opened, apart from its master key.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub async fn check(address: &Address) -> Result<(), OpenError> {
        Connection::open_checked(address, None).await.map(drop)
    }

    /// Checks a database as [`Self::check`] does, and returns the state of its server.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub async fn inspect(address: &Address) -> Result<DatabaseReport, OpenError> {
        let (connection, _) = Connection::open_checked(address, None).await?;
        inspection::inspect(&connection).await
    }

    /// Opens a database that has the schema of this program.
    ///
    /// # Errors
    /// See [`OpenError`]; nothing is changed by a failure.
    pub async fn open(address: &Address, connections: Connections, vault: Vault) -> Result<Self, OpenError> {
        let (first, installation) = Connection::open_checked(address, None).await?;
        secrets::seal(&first, &vault).await?;
        let shared = Arc::new(Shared::new(address.clone(), installation, vault, Ids::draw()?));
        let mut all = vec![first];
        while all.len() < connections.writers.max(1) + connections.readers.max(1) {
            all.push(shared.connect().await?);
        }
        let readers = all.split_off(connections.writers.max(1));
        let writers = Writers::start(all, Arc::clone(&shared));
        Ok(Self { readers: Readers::of(readers, Arc::clone(&shared)), writers, shared })
    }

    /// Encrypts every secret of a database that no engine uses with the vault's current key. Repeated, it continues where it was
    /// interrupted.
    ///
    /// # Errors
    /// [`OpenError::EnginesRunning`], [`OpenError::MasterKey`]; see [`OpenError`].
    pub async fn rotate_master_key(address: &Address, vault: &Vault) -> Result<(), OpenError> {
        secrets::rotate(address, vault).await
    }

    /// Verifies a database. Engines may use it.
    ///
    /// # Errors
    /// See [`OpenError`]. Findings in the data are in the report.
    pub async fn verify_database(address: &Address) -> Result<Report, OpenError> {
        let (connection, _) = Connection::open_checked(address, None).await?;
        verified(connection).await
    }

    /// Verifies the database of this store, on a connection of its own.
    ///
    /// # Errors
    /// [`ReadError`] if the database cannot be reached.
    pub async fn verify(&self) -> Result<Report, ReadError> {
        let connection = self.shared.connect().await?;
        verified(connection).await.map_err(|error| ReadError::Unavailable(error.to_string()))
    }

    /// Streams every row as an embedded store has it, all of one snapshot, for a backup or an export. Records that do not decode are
    /// logged and omitted.
    #[must_use]
    pub fn rows(&self) -> Rows {
        stream(Arc::clone(&self.shared))
    }

    /// Commits the queued batches, then rejects later ones with [`CommitError::Overloaded`].
    pub async fn close(&self) {
        self.writers.close().await;
    }

    /// Returns the metrics of commits.
    #[must_use]
    pub fn commit_metrics(&self) -> &CommitMetrics {
        &self.shared.metrics
    }

    pub(crate) fn vault(&self) -> &Vault {
        &self.shared.vault
    }

    /// Counts merchants with encrypted and unencrypted secrets.
    ///
    /// # Errors
    /// [`ReadError`] if the database cannot be reached.
    pub async fn secrets(&self) -> Result<Secrets, ReadError> {
        let connection = self.readers.connection().await?;
        Ok(secrets::count(&connection).await?)
    }

    /// Returns the row counts and queue lengths. Counts of large tables are the planner's estimates.
    ///
    /// # Errors
    /// [`ReadError`] where the database cannot be reached.
    pub async fn figures(&self) -> Result<Figures, ReadError> {
        let rows = self.readers.query(FIGURES, &[]).await?;
        let Some(row) = rows.first() else { return Ok(Figures::default()) };
        let count = |place| Ok::<_, Fault>(unsigned(column(row, place)?));
        Ok(Figures {
            payments: count(0)?,
            open_payments: count(1)?,
            in_flight: count(2)?,
            merchants: count(3)?,
            events: count(4)?,
            outbox: count(5)?,
            unmatched: count(6)?,
            unmatched_by_payment: count(7)?,
            queue: self.writers.waiting() as u64,
        })
    }

    /// Returns the read of a query.
    pub(crate) fn read<'s, T: Send + 's>(
        &'s self,
        query: impl Future<Output = Result<T, Fault>> + Send + 's,
    ) -> Read<'s, T> {
        Box::pin(async move { Ok(query.await.inspect_err(|fault| self.readers.note(fault))?) })
    }
}

async fn verified(mut connection: Connection) -> Result<Report, OpenError> {
    connection.begin_maintenance("REPEATABLE READ").await?;
    let report = verify::verify(&connection).await?;
    connection.run("ROLLBACK").await?;
    Ok(report)
}

/// Deletes the ids of commits that are too old to be resolved, as many as one statement should.
async fn prune_commits(readers: &Readers) -> Result<(), Fault> {
    let sql = "DELETE FROM commits WHERE id IN (SELECT id FROM commits WHERE unindexed_payments IS NULL \
               AND committed_at < now() - interval '1 day' ORDER BY committed_at LIMIT 10000)";
    readers.query(sql, &[]).await.map(drop)
}

const FIGURES: &str = "SELECT \
     (SELECT greatest(reltuples, 0)::bigint FROM pg_class WHERE oid = 'payments'::regclass), \
     (SELECT coalesce(sum(open_payments), 0)::bigint FROM merchant_usage), \
     (SELECT count(*) FROM payments WHERE in_flight), \
     (SELECT count(*) FROM merchants), \
     (SELECT greatest(reltuples, 0)::bigint FROM pg_class WHERE oid = 'events'::regclass), \
     (SELECT count(*) FROM deliveries WHERE due_at IS NOT NULL), \
     (SELECT greatest(reltuples, 0)::bigint FROM pg_class WHERE oid = 'unmatched_transfers'::regclass), \
     (SELECT count(*) FROM unmatched_transfers WHERE waits_for_payment_id IS NOT NULL)";

impl Store for PostgresStore {
    fn commit(&self, batch: Batch) -> BoxFuture<'_, Result<(), CommitError>> {
        Box::pin(self.writers.commit(batch))
    }

    fn resolve(&self, id: CommitId) -> BoxFuture<'_, Result<Resolution, CommitError>> {
        Box::pin(async move {
            let deadline = Instant::now() + RESOLVE_TIMEOUT;
            let resolved = resolve::until(&self.shared, Id(id.bits()), deadline).await;
            resolved.map(|(_, resolution)| resolution).map_err(|fault| unavailable(fault.to_string()))
        })
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn damaged_rows(&self) -> u64 {
        self.readers.damaged()
    }

    fn index_search(&self, _: Timestamp, max: usize) -> BoxFuture<'_, Result<usize, CommitError>> {
        Box::pin(async move {
            if let Err(fault) = prune_commits(&self.readers).await {
                return Err(unavailable(fault.to_string()));
            }
            match search::index(&self.readers, max).await {
                Ok(indexed) => Ok(indexed),
                // A payment changed, or another indexer was faster: the next call sees it.
                Err(Fault::Outdated(_) | Fault::Contended(_)) => Ok(0),
                Err(fault) => Err(unavailable(fault.to_string())),
            }
        })
    }
}
