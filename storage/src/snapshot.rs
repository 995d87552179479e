//! The store as it is after its last commit: one snapshot, shared by everybody who asks before the next.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use redb::{Database, Key, ReadOnlyTable, ReadTransaction, ReadableDatabase, TableDefinition, Value};

use crate::{
    fault::Fault,
    tables::{API_KEYS, CLAIMS, MERCHANTS, PAYMENTS, SLUGS},
};

/// One state of the store. Beginning to read and opening a table cost more than a point read does, so the tables that
/// every request reads stay open.
pub(crate) struct Snapshot {
    transaction: ReadTransaction,
    payments: OnceLock<ReadOnlyTable<u128, &'static [u8]>>,
    slugs: OnceLock<ReadOnlyTable<u128, u128>>,
    merchants: OnceLock<ReadOnlyTable<u128, &'static [u8]>>,
    api_keys: OnceLock<ReadOnlyTable<&'static [u8; 32], u128>>,
    claims: OnceLock<ReadOnlyTable<&'static [u8; 20], &'static [u8]>>,
}

impl Snapshot {
    fn of(transaction: ReadTransaction) -> Self {
        Self {
            transaction,
            payments: OnceLock::new(),
            slugs: OnceLock::new(),
            merchants: OnceLock::new(),
            api_keys: OnceLock::new(),
            claims: OnceLock::new(),
        }
    }

    /// Returns the transaction, for what is read seldom.
    pub(crate) fn transaction(&self) -> &ReadTransaction {
        &self.transaction
    }

    pub(crate) fn payments(&self) -> Result<&ReadOnlyTable<u128, &'static [u8]>, Fault> {
        self.open(&self.payments, PAYMENTS)
    }

    pub(crate) fn slugs(&self) -> Result<&ReadOnlyTable<u128, u128>, Fault> {
        self.open(&self.slugs, SLUGS)
    }

    pub(crate) fn merchants(&self) -> Result<&ReadOnlyTable<u128, &'static [u8]>, Fault> {
        self.open(&self.merchants, MERCHANTS)
    }

    pub(crate) fn api_keys(&self) -> Result<&ReadOnlyTable<&'static [u8; 32], u128>, Fault> {
        self.open(&self.api_keys, API_KEYS)
    }

    pub(crate) fn claims(&self) -> Result<&ReadOnlyTable<&'static [u8; 20], &'static [u8]>, Fault> {
        self.open(&self.claims, CLAIMS)
    }

    fn open<'s, K: Key + 'static, V: Value + 'static>(
        &self,
        place: &'s OnceLock<ReadOnlyTable<K, V>>,
        definition: TableDefinition<'static, K, V>,
    ) -> Result<&'s ReadOnlyTable<K, V>, Fault> {
        if let Some(table) = place.get() {
            return Ok(table);
        }
        let table = self.transaction.open_table(definition)?;
        Ok(place.get_or_init(|| table))
    }
}

/// Where the newest snapshot is found.
pub(crate) struct Newest(Mutex<State>);

struct State {
    /// None once closed.
    database: Option<Arc<Database>>,
    snapshot: Option<Arc<Snapshot>>,
}

impl Newest {
    /// Starts with nothing read.
    pub(crate) fn of(database: Arc<Database>) -> Self {
        Self(Mutex::new(State { database: Some(database), snapshot: None }))
    }

    /// Returns the snapshot of the last commit. It is begun under the lock that [`Newest::outdate`] takes: one begun
    /// before a commit cannot be found after it.
    pub(crate) fn get(&self) -> Result<Arc<Snapshot>, Fault> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(snapshot) = &state.snapshot {
            return Ok(Arc::clone(snapshot));
        }
        let database = state.database.as_ref().ok_or_else(|| Fault::Disk("it is closed".to_owned()))?;
        let snapshot = Arc::new(Snapshot::of(database.begin_read()?));
        state.snapshot = Some(Arc::clone(&snapshot));
        Ok(snapshot)
    }

    /// Lets go of the snapshot: something was committed. To be called before anybody is told so. A snapshot that lived
    /// on would keep every page since from being used again, and the file would grow.
    pub(crate) fn outdate(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).snapshot = None;
    }

    /// Lets go of the database, too.
    pub(crate) fn close(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = State { database: None, snapshot: None };
    }
}

impl std::fmt::Debug for Newest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Newest").finish_non_exhaustive()
    }
}
