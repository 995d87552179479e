//! The handle of webhooks and events.

use std::sync::Arc;

use engine::audit::Actor;

use crate::{access::Access, error::EngineError, webhooks::notifier::Notifier};

/// Events of merchants, and their delivery to endpoints. Cheap to clone.
#[derive(Clone)]
pub struct Webhooks {
    pub(crate) access: Access,
    pub(crate) notifier: Arc<Notifier>,
}

impl Webhooks {
    pub(crate) fn new(access: Access, notifier: Arc<Notifier>) -> Self {
        Self { access, notifier }
    }

    /// Returns the same handle for another actor of the audit log.
    pub(crate) fn by(&self, actor: Arc<Actor>) -> Self {
        Self { access: self.access.by(actor), ..self.clone() }
    }

    /// Returns whether webhooks may use plain http.
    #[must_use]
    pub fn allows_insecure(&self) -> bool {
        self.access.context.settings.allow_insecure_webhooks
    }

    /// Returns the number of due deliveries of all merchants, at most `limit`.
    ///
    /// # Errors
    /// Store errors.
    pub async fn due_deliveries(&self, limit: usize) -> Result<usize, EngineError> {
        let due = self.access.context.env.store.due_deliveries(self.access.now(), limit).await;
        due.map(|due| due.len()).map_err(|e| self.access.read_failed(&e))
    }
}
