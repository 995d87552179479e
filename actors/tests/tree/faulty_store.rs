//! A store that fails on request: commits whose outcome is unknown, and a merchant whose record is damaged.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};

use engine::ids::MerchantId;
use futures_util::future::BoxFuture;
use storage::{Batch, Call, CommitError, CommitId, ReadError, Resolution, Store, Wrapped};

/// A store behind which everything is well.
pub(crate) struct FaultyStore {
    inner: Arc<dyn Store>,
    fails: AtomicBool,
    fails_to_read: AtomicBool,
    damaged: Mutex<Option<MerchantId>>,
}

impl FaultyStore {
    pub(crate) fn over(inner: Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self {
            inner,
            fails: AtomicBool::new(false),
            fails_to_read: AtomicBool::new(false),
            damaged: Mutex::new(None),
        })
    }

    /// Fails every commit from now on.
    pub(crate) fn fail(&self) {
        self.fails.store(true, Ordering::SeqCst);
    }

    /// Fails every read of the watched accounts from now on.
    pub(crate) fn fail_to_read(&self) {
        self.fails_to_read.store(true, Ordering::SeqCst);
    }

    /// Finds the record of a merchant damaged from now on.
    pub(crate) fn damage(&self, merchant: MerchantId) {
        *self.damaged.lock().unwrap() = Some(merchant);
    }
}

impl Wrapped for FaultyStore {
    type Inner = dyn Store;

    fn inner(&self) -> &dyn Store {
        &*self.inner
    }

    fn before(&self, call: &Call<'_>) -> Result<(), ReadError> {
        if call.name == "merchant"
            && let (Some(damaged), Some(id)) = (*self.damaged.lock().unwrap(), call.argument::<MerchantId>(0))
            && damaged == *id
        {
            let why = "a bit is wrong".to_owned();
            return Err(ReadError::Damaged { table: "merchants", key: id.to_string(), why });
        }
        if call.name == "watched_accounts" && self.fails_to_read.load(Ordering::SeqCst) {
            return Err(ReadError::Failed("the disk is gone".to_owned()));
        }
        Ok(())
    }
}

impl Store for FaultyStore {
    fn commit(&self, batch: Batch) -> BoxFuture<'_, Result<(), CommitError>> {
        if self.fails.load(Ordering::SeqCst) {
            return Box::pin(async { Err(CommitError::Unknown("the disk is gone".to_owned())) });
        }
        self.inner.commit(batch)
    }

    fn resolve(&self, id: CommitId) -> BoxFuture<'_, Result<Resolution, CommitError>> {
        if self.fails.load(Ordering::SeqCst) {
            return Box::pin(async { Err(CommitError::Unknown("the disk is gone".to_owned())) });
        }
        self.inner.resolve(id)
    }
}
