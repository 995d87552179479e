//! The interface of a running engine: one handle for each domain.

use std::sync::Arc;

use engine::{audit::Actor, hive::Network, money::FeePercent, time::Timestamp};

use crate::{
    chain::handle::Chain, context::Context, facades::handle::Facades, merchants::handle::Merchants,
    operations::handle::Operations, payments::handle::Payments, webhooks::handle::Webhooks, x402::handle::X402,
};

/// The handles of a running engine. Cheap to clone.
#[derive(Clone)]
pub struct Engine {
    /// Payments and the transfers to merchants' accounts.
    pub payments: Payments,
    /// Merchants, their API keys, accounts and limits.
    pub merchants: Merchants,
    /// Payments by HTTP 402.
    pub x402: X402,
    /// Events and their delivery.
    pub webhooks: Webhooks,
    /// The ledger and its nodes.
    pub chain: Chain,
    /// Health, metrics, audit log, billing and reconciliation.
    pub operations: Operations,
    /// State that facades share: dashboard sessions and lockouts.
    pub facades: Facades,
    pub(crate) context: Arc<Context>,
}

impl Engine {
    /// Returns the same handles for another actor of the audit log; `None` for the operator.
    #[must_use]
    pub fn by(&self, actor: Actor) -> Self {
        let actor = Arc::new(actor);
        Self {
            payments: self.payments.by(Arc::clone(&actor)),
            merchants: self.merchants.by(Arc::clone(&actor)),
            x402: self.x402.by(Arc::clone(&actor)),
            webhooks: self.webhooks.by(Arc::clone(&actor)),
            chain: self.chain.clone(),
            operations: self.operations.by(actor),
            facades: self.facades.clone(),
            context: Arc::clone(&self.context),
        }
    }

    /// Returns the engine's time: the later of the wall clock and the newest head block.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.context.now()
    }

    /// Returns the network of the engine.
    #[must_use]
    pub fn network(&self) -> Network {
        self.context.settings.network()
    }

    /// Returns the fee of payments created now.
    #[must_use]
    pub fn fee_percent(&self) -> FeePercent {
        self.context.settings.fee_percent
    }
}
