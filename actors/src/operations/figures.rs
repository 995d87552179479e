//! What people look at: sums over days, and how the ledger's nodes are.

use std::time::Duration;

use engine::ids::MerchantId;
use storage::{Volume, VolumeQuery};

use crate::{
    chain::nodes::NodeState,
    gateway::{Gateway, GatewayError},
};

const DAY_MS: u64 = 86_400_000;

impl Gateway {
    /// Adds up a merchant's payments of today and the days before, `days` in all, days of UTC.
    ///
    /// # Errors
    /// Store errors.
    pub async fn volume(&self, merchant: MerchantId, days: u64) -> Result<Volume, GatewayError> {
        let query = VolumeQuery { merchant, last_day: self.now().millis() / DAY_MS, days };
        self.context().env.store.volume(query).await.map_err(|e| self.read_failed(&e))
    }

    /// Returns for how long the head that a majority of the nodes has reached did not rise; none before the first.
    #[must_use]
    pub fn head_age(&self) -> Option<Duration> {
        self.context().nodes.head_age()
    }

    /// Returns the state of the ledger's nodes, and how many of them must agree.
    #[must_use]
    pub fn nodes(&self) -> (Vec<NodeState>, usize) {
        let nodes = &self.context().nodes;
        (nodes.states(), nodes.needed())
    }
}
