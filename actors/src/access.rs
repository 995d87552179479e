//! What the handles share: the context, on whose behalf they act, and the permits of the write queue.

use std::sync::Arc;

use engine::{
    audit::{self, Actor, Entry},
    ids::MerchantId,
    merchant::Merchant,
    time::Timestamp,
};
use storage::{Batch, CommitError, ReadError, Write};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::{context::Context, error::EngineError};

/// The state that the handles share.
#[derive(Clone)]
pub(crate) struct Access {
    pub(crate) context: Arc<Context>,
    /// The actor of the audit log; `None` for the operator.
    actor: Option<Arc<Actor>>,
    /// Permits of calls that may wait at once; ractor's mailboxes are unbounded.
    permits: Arc<Semaphore>,
}

impl Access {
    pub(crate) fn new(context: Arc<Context>) -> Self {
        let permits = Arc::new(Semaphore::new(context.settings.max_waiting_calls));
        Self { context, actor: None, permits }
    }

    /// Returns the same for another actor of the audit log.
    pub(crate) fn by(&self, actor: Arc<Actor>) -> Self {
        Self { actor: Some(actor), ..self.clone() }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.context.now()
    }

    /// Returns the actor of the audit log.
    pub(crate) fn actor(&self) -> Actor {
        self.actor.as_deref().cloned().unwrap_or_default()
    }

    /// Returns the permits of the write queue.
    pub(crate) fn permits(&self) -> &Arc<Semaphore> {
        &self.permits
    }

    /// Returns a permit of the write queue.
    ///
    /// # Errors
    /// [`EngineError::Overloaded`] if too many calls wait.
    pub(crate) fn permit(&self) -> Result<SemaphorePermit<'_>, EngineError> {
        self.permits.try_acquire().map_err(|_| EngineError::Overloaded)
    }

    /// Returns a merchant.
    ///
    /// # Errors
    /// [`EngineError::MerchantNotFound`]; store errors.
    pub(crate) async fn merchant(&self, id: MerchantId) -> Result<Arc<Merchant>, EngineError> {
        let found = self.context.env.store.merchant(id).await.map_err(|e| self.read_failed(&e))?;
        found.ok_or(EngineError::MerchantNotFound)
    }

    /// Commits a batch.
    ///
    /// # Errors
    /// Store errors.
    pub(crate) async fn commit(&self, batch: Batch) -> Result<(), EngineError> {
        self.context.env.store.commit(batch).await.map_err(|error| self.commit_failed(error))
    }

    /// Returns an audit event, to be stored with the change that it records.
    pub(crate) fn entry(
        &self,
        action: &str,
        merchant: MerchantId,
        subject: Option<String>,
        changes: Vec<audit::FieldChange>,
    ) -> Entry {
        let (at, actor, action) = (self.now(), self.actor(), action.to_owned());
        Entry { seq: 0, at, actor, action, merchant, subject, changes }
    }

    /// Returns the write of an audit event.
    pub(crate) fn audit_event(
        &self,
        action: &str,
        merchant: MerchantId,
        subject: Option<String>,
        changes: Vec<audit::FieldChange>,
    ) -> Write {
        Write::Audit(Box::new(self.entry(action, merchant, subject, changes)))
    }

    /// Records a failed commit; returns the error for the caller.
    pub(crate) fn commit_failed(&self, error: CommitError) -> EngineError {
        match error {
            CommitError::Overloaded => EngineError::Overloaded,
            CommitError::KeysFull => EngineError::TooManyIdempotencyKeys,
            CommitError::Conflict { .. }
            | CommitError::Claimed(_)
            | CommitError::Assigned(_)
            | CommitError::Remembered(_)
            | CommitError::Deposed(_)
            | CommitError::OnHold(_) => EngineError::Contended,
            CommitError::QuotaReached(reached) => EngineError::Quota(reached),
            CommitError::Unavailable(_) => EngineError::Unavailable,
            CommitError::Unknown(_) => EngineError::StoreFailed,
        }
    }

    /// Records a failed read; returns the error for the caller.
    pub(crate) fn read_failed(&self, error: &ReadError) -> EngineError {
        read_failed(&self.context, error)
    }
}

/// Records a failed read; returns the error for the caller.
pub(crate) fn read_failed(context: &Context, error: &ReadError) -> EngineError {
    context.read_failed(error);
    match error {
        ReadError::Damaged { table, key, .. } => EngineError::Damaged { table, key: key.clone() },
        ReadError::Unavailable(_) => EngineError::Unavailable,
        ReadError::Failed(_) => EngineError::StoreFailed,
    }
}
