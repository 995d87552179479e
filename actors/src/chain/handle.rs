//! The handle of the chain: the state of the ledger's nodes.

use std::{sync::Arc, time::Duration};

use crate::chain::{ledger::Ledger, nodes::health::NodeState};

/// The state of the ledger and its nodes.
#[derive(Clone)]
pub struct Chain {
    ledger: Arc<Ledger>,
}

impl Chain {
    pub(crate) fn new(ledger: Arc<Ledger>) -> Self {
        Self { ledger }
    }

    /// Returns for how long the head that a majority of the nodes has reached did not rise; none before the first.
    #[must_use]
    pub fn head_age(&self) -> Option<Duration> {
        self.ledger.nodes.head_age()
    }

    /// Returns the state of the ledger's nodes, and how many of them must agree.
    #[must_use]
    pub fn nodes(&self) -> (Vec<NodeState>, usize) {
        (self.ledger.nodes.states(), self.ledger.nodes.needed())
    }
}
