//! The store of an engine: an embedded one in its data directory, or a PostgreSQL database.

use std::{sync::Arc, time::Duration};

use storage::{CommitMetrics, EmbeddedStore, Figures, PostgresStore, ReadError, Report, Rows, Secrets, Store};

/// How long a scrape of the metrics waits for the row counts of a database.
const FIGURES_TIMEOUT: Duration = Duration::from_secs(2);

/// An open store.
#[derive(Debug, Clone)]
pub enum OpenStore {
    /// A store in the data directory, which one engine has open.
    Embedded(Arc<EmbeddedStore>),
    /// A PostgreSQL database, which several engines may share.
    Postgres(Arc<PostgresStore>),
}

impl From<Arc<EmbeddedStore>> for OpenStore {
    fn from(store: Arc<EmbeddedStore>) -> Self {
        Self::Embedded(store)
    }
}

impl From<Arc<PostgresStore>> for OpenStore {
    fn from(store: Arc<PostgresStore>) -> Self {
        Self::Postgres(store)
    }
}

impl OpenStore {
    /// Returns the store for the actors.
    #[must_use]
    pub fn actor_store(&self) -> Arc<dyn Store> {
        match self {
            Self::Embedded(store) => Arc::clone(store) as Arc<dyn Store>,
            Self::Postgres(store) => Arc::clone(store) as Arc<dyn Store>,
        }
    }

    /// Returns the embedded store; none for a database, which has backups of its own.
    #[must_use]
    pub const fn embedded(&self) -> Option<&Arc<EmbeddedStore>> {
        match self {
            Self::Embedded(store) => Some(store),
            Self::Postgres(_) => None,
        }
    }

    /// Commits the queued batches, then refuses later ones.
    pub async fn close(&self) {
        match self {
            Self::Embedded(store) => store.close().await,
            Self::Postgres(store) => store.close().await,
        }
    }

    /// Returns whether the disk of the data directory is full.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.embedded().is_some_and(|store| store.is_full())
    }

    /// Returns the metrics of commits.
    #[must_use]
    pub fn commit_metrics(&self) -> &CommitMetrics {
        match self {
            Self::Embedded(store) => store.commit_metrics(),
            Self::Postgres(store) => store.commit_metrics(),
        }
    }

    /// Counts merchants with encrypted and unencrypted secrets.
    ///
    /// # Errors
    /// [`ReadError`] if the store cannot be read.
    pub async fn secrets(&self) -> Result<Secrets, ReadError> {
        match self {
            Self::Embedded(store) => store.secrets(),
            Self::Postgres(store) => store.secrets().await,
        }
    }

    /// Streams every row of the store as of now, in the form of an embedded store.
    ///
    /// # Errors
    /// [`ReadError`] if the store cannot be read.
    pub fn rows(&self) -> Result<Rows, ReadError> {
        match self {
            Self::Embedded(store) => store.rows(),
            Self::Postgres(store) => Ok(store.rows()),
        }
    }

    /// Verifies the whole store as of now.
    ///
    /// # Errors
    /// [`ReadError`] if the store cannot be read.
    pub async fn verify(&self) -> Result<Report, ReadError> {
        match self {
            Self::Embedded(store) => store.verify().await,
            Self::Postgres(store) => store.verify().await,
        }
    }

    /// Returns the row counts of the store; none of a failed embedded store, and of a database that does not respond. Blocks for up
    /// to two seconds.
    #[must_use]
    pub fn figures(&self) -> Option<Figures> {
        match self {
            Self::Embedded(store) => store.figures().ok().filter(|_| store.failure().is_none()),
            Self::Postgres(store) => {
                let runtime = tokio::runtime::Handle::try_current().ok()?;
                runtime.block_on(tokio::time::timeout(FIGURES_TIMEOUT, store.figures())).ok()?.ok()
            }
        }
    }
}
