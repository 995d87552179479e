//! The embedded store: a database file with its write-ahead log. Opens stores, creates them so that a power loss cannot
//! leave half of one, and runs reads and commits.

use std::{path::Path, sync::Arc};

use engine::{ids::MerchantId, time::Timestamp};
use futures_util::future::BoxFuture;
use redb::{Database, StorageBackend};

use crate::{
    batch::{Batch, CommitError, CommitId, Resolution},
    embedded::{
        commit::{
            committer::{CommitMode, Committer},
            prepared::{Prepared, Step},
            writer::Parts,
        },
        damage::DamagedRows,
        fault::Fault,
        maintenance::{
            backup::{self, Row, Rows},
            directory::{self, DirectoryLock},
            migration, repair, sealing, verify,
        },
        metrics::CommitMetrics,
        options::Options,
        read::search,
        tables,
        wal::{
            log::Log,
            snapshot::{CurrentSnapshot, Epoch, Snapshot},
        },
    },
    record::{
        self,
        vault::{Secrets, Vault},
    },
    store::{
        Store,
        error::{FILE_NAME, OpenError, Read, ReadError},
        report::{Figures, Report},
    },
};

/// A [`Store`] in one redb file with a write-ahead log.
#[derive(Debug)]
pub struct EmbeddedStore {
    newest: Arc<CurrentSnapshot>,
    committer: Committer,
    pub(crate) vault: Vault,
    damages: DamagedRows,
    /// Dropped last: it locks the directory against other processes.
    _lock: Option<DirectoryLock>,
}

impl EmbeddedStore {
    /// Opens the store of a data directory. Creates both if the options allow it, accessible to their owner only.
    ///
    /// # Errors
    /// See [`OpenError`]. A failure changes nothing in an existing store.
    pub fn open(data: &Path, options: Options) -> Result<Self, OpenError> {
        Self::open_sealed(data, options, Vault::default())
    }

    /// Opens a store with a master key. Secrets that are not sealed with it are sealed at once, all or none.
    ///
    /// # Errors
    /// See [`OpenError`]; [`OpenError::MasterKey`] if the store is sealed with a key that is not in the vault.
    pub fn open_sealed(data: &Path, options: Options, vault: Vault) -> Result<Self, OpenError> {
        directory::catch_panic(&data.join(FILE_NAME), || Self::open_directory(data, options, vault))
    }

    fn open_directory(data: &Path, options: Options, vault: Vault) -> Result<Self, OpenError> {
        directory::look_for_store(data, options.may_create)?;
        let lock = DirectoryLock::take(data)?;
        let open = || {
            let database = directory::open_or_create(data, options.cache_bytes)?;
            let log = directory::recover_log(data, options.log_bytes, &database)?;
            Ok::<_, OpenError>((database, log))
        };
        let (mut database, mut log) = open()?;
        if migration::is_due(&database)? {
            drop((database, log));
            migration::migrate(data, &migration::STEPS)?;
            (database, log) = open()?;
        }
        directory::check_schema(&database)?;
        if vault.seal_secrets(&database)? {
            // Freed pages and the log still contain the unencrypted secrets.
            drop((database, log));
            let rewritten = backup::rewrite(data);
            (database, log) = open()?;
            match rewritten {
                Ok(()) => sealing::clear_reseal_pending(&database)?,
                // The next start retries.
                Err(error @ OpenError::Unsound(_)) => {
                    tracing::error!(%error, "store is damaged: unencrypted secrets remain in freed pages");
                }
                Err(error) => return Err(error),
            }
        }
        Self::over(database, log, Some(lock), options.mode, vault)
    }

    /// Opens a store on backends, such as files of a simulated disk. Empty backends become a new store, and so do
    /// backends with an interrupted creation.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open_backends(
        database: impl StorageBackend,
        logs: [impl StorageBackend; 2],
        options: Options,
        vault: Vault,
    ) -> Result<Self, OpenError> {
        let logs = logs.map(|log| -> Box<dyn StorageBackend> { Box::new(log) });
        let database = directory::open_backend(database, &logs, options.cache_bytes)?;
        let log = directory::recover(logs, options.log_bytes, &database, Path::new("the backend"))?;
        Self::over(database, log, None, options.mode, vault)
    }

    fn over(
        database: Database,
        log: Log,
        lock: Option<DirectoryLock>,
        mode: CommitMode,
        vault: Vault,
    ) -> Result<Self, OpenError> {
        directory::check_schema(&database)?;
        vault.seal_secrets(&database)?;
        repair::accounts(&database)?;
        let damages = DamagedRows::none_of(&tables::NAMES);
        let snapshot = Snapshot::of(Epoch::begin(&database, &damages)?);
        let search_cursor = search::cursor(&snapshot)?;
        let newest = Arc::new(CurrentSnapshot::of(snapshot));
        let parts = Parts { database, log, newest: Arc::clone(&newest), search_cursor, damages: damages.clone() };
        let committer = Committer::start(parts, mode)?;
        Ok(Self { newest, committer, vault, damages, _lock: lock })
    }

    /// Commits the waiting batches, then closes the file. Later commits are rejected with [`CommitError::Overloaded`],
    /// later reads with [`ReadError::Failed`].
    pub async fn close(&self) {
        self.committer.close().await;
        self.newest.close();
    }

    /// Returns the metrics of commits.
    pub fn commit_metrics(&self) -> &CommitMetrics {
        self.committer.metrics()
    }

    /// Returns row counts and queue lengths.
    ///
    /// # Errors
    /// [`ReadError::Failed`] when the disk fails or the store is closed.
    pub fn figures(&self) -> Result<Figures, ReadError> {
        Ok(Figures { queue: self.committer.waiting() as u64, ..self.query_snapshot(figures)? })
    }

    /// Streams every row of the current snapshot, for a backup. Until all rows are taken or the receiver is dropped,
    /// replaced pages are not reused and the file grows.
    ///
    /// # Errors
    /// [`ReadError::Failed`] when the disk fails or the store is closed.
    pub fn rows(&self) -> Result<Rows, ReadError> {
        backup::stream(self.newest.get()?)
    }

    /// Passes every row of the current snapshot to `visit` on the caller's thread, for programs without threads.
    ///
    /// # Errors
    /// [`ReadError::Failed`] when the disk fails or the store is closed.
    pub fn each_row_inline(&self, mut visit: impl FnMut(Row)) -> Result<(), ReadError> {
        Ok(backup::each(&self.newest.get()?, &mut visit)?)
    }

    /// Verifies the current snapshot on a thread of its own, concurrently with commits.
    ///
    /// # Errors
    /// [`ReadError::Failed`] when the disk fails or the store is closed.
    pub async fn verify(&self) -> Result<Report, ReadError> {
        verify::on_a_thread(self.newest.get()?).await
    }

    /// Verifies the current snapshot on the caller's thread, for programs without threads.
    ///
    /// # Errors
    /// [`ReadError::Failed`] when the disk fails or the store is closed.
    pub fn verify_inline(&self) -> Result<Report, ReadError> {
        Ok(verify::snapshot(&self.newest.get()?)?)
    }

    /// Returns how many merchants have sealed and unsealed webhook secrets.
    ///
    /// # Errors
    /// [`ReadError`] when the disk fails, the store is closed or a row is damaged.
    pub fn secrets(&self) -> Result<Secrets, ReadError> {
        Ok(self.query_snapshot(|snapshot| {
            let mut secrets = Secrets::default();
            let merchants = snapshot.merchants();
            for entry in merchants.iter()? {
                let (key, bytes) = entry?;
                let id = MerchantId::from_bits(key.value());
                let is_plain = record::merchant_is_plain(bytes.value()).map_err(Fault::damaged("merchants", id));
                let Some(is_plain) = merchants.skip_damaged(is_plain)? else { continue };
                *(if is_plain { &mut secrets.plain } else { &mut secrets.sealed }) += 1;
            }
            Ok(secrets)
        })?)
    }

    /// Returns whether the store has failed because the disk is full.
    pub fn is_full(&self) -> bool {
        self.committer.health().is_full()
    }

    /// Commits a group of batches, each as a whole or not at all; returns the outcomes in the same order. With
    /// [`CommitMode::Inline`] they share one transaction, otherwise they go to the writer one by one.
    pub async fn commit_group(&self, batches: Vec<Batch>) -> Vec<Result<(), CommitError>> {
        let prepared = batches.into_iter().map(|batch| Prepared::from_batch(batch, &self.vault)).collect();
        self.committer.commit_group(prepared).await
    }

    /// Returns the reason of the failure, if the disk has failed.
    pub fn failure(&self) -> Option<&str> {
        self.committer.health().failure()
    }

    /// Waits until the disk fails; returns the reason. The process should then exit: only reopening the store shows
    /// what is stored.
    pub async fn failed(&self) -> String {
        self.committer.health().failed().await
    }

    /// Runs a query on the current snapshot, without waiting.
    pub(crate) fn read<'a, T: Send + 'a>(
        &'a self,
        query: impl FnOnce(&Snapshot) -> Result<T, Fault> + Send + 'a,
    ) -> Read<'a, T> {
        Box::pin(async move { Ok(self.query_snapshot(query)?) })
    }

    fn query_snapshot<T>(&self, query: impl FnOnce(&Snapshot) -> Result<T, Fault>) -> Result<T, Fault> {
        query(&self.newest.get()?).inspect_err(|fault| self.damages.note_fault(fault))
    }
}

impl Store for EmbeddedStore {
    fn commit(&self, batch: Batch) -> BoxFuture<'_, Result<(), CommitError>> {
        Box::pin(async move { self.committer.commit(Prepared::from_batch(batch, &self.vault)).await })
    }

    fn resolve(&self, id: CommitId) -> BoxFuture<'_, Result<Resolution, CommitError>> {
        Box::pin(async move {
            match self.committer.commit(Prepared::forbidding(id)).await {
                Ok(()) => Ok(Resolution::Forbidden),
                Err(CommitError::Conflict { .. }) => Ok(Resolution::Applied),
                Err(CommitError::Overloaded) => Err(CommitError::Unavailable("its queue is full".to_owned())),
                Err(error) => Err(error),
            }
        })
    }

    fn damaged_rows(&self) -> u64 {
        self.damages.count()
    }

    fn index_search(&self, now: Timestamp, max: usize) -> BoxFuture<'_, Result<usize, CommitError>> {
        Box::pin(async move {
            let Some(indexed) = self.query_snapshot(|snapshot| search::gather(snapshot, now, max))? else {
                return Ok(0);
            };
            let payments = usize::try_from(indexed.payments).unwrap_or(max);
            match self.committer.commit(Prepared { id: None, steps: vec![Step::Index(indexed)] }).await {
                Ok(()) => Ok(payments),
                // Another payment was inserted, or another indexer was faster: the next call retries.
                Err(CommitError::Conflict { .. }) => Ok(0),
                Err(error) => Err(error),
            }
        })
    }
}

/// Counts the rows for [`Figures`].
fn figures(snapshot: &Snapshot) -> Result<Figures, Fault> {
    Ok(Figures {
        payments: snapshot.payments().len()?,
        open_payments: snapshot.deadlines().len()?,
        in_flight: snapshot.in_flight().len()?,
        merchants: snapshot.merchants().len()?,
        events: snapshot.events().len()?,
        outbox: snapshot.outbox().len()?,
        unmatched: snapshot.unmatched().len()?,
        unmatched_by_payment: snapshot.unmatched_by_payment().len()?,
        queue: 0,
    })
}
