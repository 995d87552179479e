//! The handle of operations: health, metrics, the audit log and the reconciliation.

use std::{sync::Arc, time::Duration};

use engine::{
    account::AccountName,
    audit::{Actor, Entry},
    ids::MerchantId,
    reconciliation::Day,
    time::Timestamp,
};
use prometheus_client::registry::Registry;
use storage::{AuditQuery, Batch, EngineId, Membership};

use crate::{
    access::Access,
    chain::{ledger::Ledger, ledger_view::LedgerStatus},
    error::EngineError,
    operations::ledger_metrics::LedgerCollector,
    payments::handle::Payments,
};

/// The health of the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Health {
    /// The state of the ledger.
    pub ledger: LedgerStatus,
    /// Whether payments can be created: the chain is read from a known block on, and the nodes serve that chain.
    pub is_following: bool,
    /// The number of active sessions.
    pub active: usize,
    /// The number of damaged rows that were read since the start.
    pub damaged_rows: u64,
    /// How long the store has been unreachable; `None` while it is reachable.
    pub store_unavailable: Option<Duration>,
}

/// Health, metrics, audit log, billing and reconciliation. Cheap to clone.
#[derive(Clone)]
pub struct Operations {
    pub(crate) access: Access,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) payments: Payments,
}

impl Operations {
    pub(crate) fn new(access: Access, ledger: Arc<Ledger>, payments: Payments) -> Self {
        Self { access, ledger, payments }
    }

    /// Returns the same handle for another actor of the audit log.
    pub(crate) fn by(&self, actor: Arc<Actor>) -> Self {
        Self { access: self.access.by(Arc::clone(&actor)), payments: self.payments.by(actor), ..self.clone() }
    }

    /// Returns the health of the engine.
    ///
    /// # Errors
    /// [`EngineError::StoreFailed`] while the engine shuts down.
    pub async fn health(&self) -> Result<Health, EngineError> {
        let active = self.payments.count_active().await?;
        let damaged_rows = self.access.context.env.store.damaged_rows();
        let (ledger, is_following) = (self.ledger.view.status(), self.ledger.view.is_followed());
        let store_unavailable = self.access.context.store.probe().await;
        Ok(Health { ledger, is_following, active, damaged_rows, store_unavailable })
    }

    /// Returns the engines that share the store and who holds which duty, and which of them this engine is; none if it does not share
    /// the store and so holds every duty.
    ///
    /// # Errors
    /// Store errors.
    pub async fn membership(&self) -> Result<Option<(Membership, EngineId)>, EngineError> {
        let context = &self.access.context;
        let Some(engine) = context.duties.engine() else { return Ok(None) };
        let membership = context.env.store.membership().await.map_err(|e| self.access.read_failed(&e))?;
        Ok(Some((membership, engine)))
    }

    /// Registers the metrics of the engine.
    pub fn register_metrics(&self, registry: &mut Registry) {
        let context = Arc::clone(&self.access.context);
        context.metrics.register(registry);
        let (ledger, waiting) = (Arc::clone(&self.ledger), Arc::clone(self.access.permits()));
        registry.register_collector(Box::new(LedgerCollector { context, ledger, waiting }));
    }

    /// Returns entries of the audit log, newest first.
    ///
    /// # Errors
    /// Store errors.
    pub async fn audit(&self, query: AuditQuery) -> Result<Vec<Entry>, EngineError> {
        self.access.context.env.store.audit(query).await.map_err(|e| self.access.read_failed(&e))
    }

    /// Records in the audit log that the records of a Hive account are exported.
    ///
    /// # Errors
    /// Store errors.
    pub async fn note_account_export(&self, account: AccountName) -> Result<(), EngineError> {
        // It concerns no single merchant.
        let merchant = self.access.actor().merchant.unwrap_or(MerchantId::from_bits(0));
        let event = self.access.audit_event("account_exported", merchant, Some(account.to_string()), Vec::new());
        self.access.commit(Batch::of(event)).await
    }

    /// Returns the reconciliations of days that began before `before`, newest first.
    ///
    /// # Errors
    /// Store errors.
    pub async fn reconciliation(&self, before: Option<Timestamp>, limit: usize) -> Result<Vec<Day>, EngineError> {
        self.access.context.env.store.reconciled_days(before, limit).await.map_err(|e| self.access.read_failed(&e))
    }
}
