//! The chain of the dev ledger with its nodes, clock and journal, and the requests to it.

use std::time::Duration;

use bytes::Bytes;
use engine::time::Timestamp;
use serde_json::Value;
use tokio::sync::oneshot;
use tracing::{error, info};

use super::{
    Clock, Options,
    failure::Failure,
    faults::Faults,
    foreign::Foreign,
    journal::{Journal, JournalError},
};
use crate::ledger::{Chain, Genesis};

/// A request.
pub(super) enum Request {
    /// The body of a request to a node.
    Rpc { node: usize, body: Bytes, reply: oneshot::Sender<Answer> },
    /// The body of a request to the control API.
    ControlBody { body: Bytes, reply: oneshot::Sender<Answer> },
    /// A call of the control API from this process.
    Control { method: String, params: Value, reply: oneshot::Sender<Result<Value, Failure>> },
}

/// A response.
pub(super) enum Answer {
    /// A body, after a delay.
    Reply { status: u16, body: Vec<u8>, delay: Duration, retry_after: Option<u64> },
    /// Nothing: the connection is closed.
    HangUp,
}

/// The chain with everything around it.
pub(super) struct Host {
    pub(super) chain: Chain,
    pub(super) genesis: Genesis,
    pub(super) nodes: Vec<Faults>,
    pub(super) auto_produce: bool,
    pub(super) block_interval: Duration,
    /// How far the chain's clock is ahead of the wall clock.
    pub(super) ahead: Duration,
    /// Operations of a later hard fork that blocks are shown with.
    pub(super) foreign: Vec<Foreign>,
    clock: Clock,
    pub(super) journal: Option<Journal>,
}

impl Host {
    pub(super) fn open(options: &Options) -> Result<Self, JournalError> {
        let (journal, genesis, mut chain) = match &options.state {
            Some(path) => {
                let (journal, genesis, chain) = Journal::open(path, &options.genesis)?;
                (Some(journal), genesis, chain)
            }
            None => (None, options.genesis.clone(), Chain::new(&options.genesis)),
        };
        chain.set_block_step(options.block_step.unwrap_or(options.block_interval));
        chain.set_irreversibility_lag(options.irreversibility_lag);
        info!(block.num = chain.head().number(), "the dev ledger is at block {}", chain.head().number());
        Ok(Self {
            chain,
            genesis,
            nodes: vec![Faults::default(); options.nodes.len()],
            auto_produce: options.auto_produce,
            block_interval: options.block_interval.max(Duration::from_millis(1)),
            ahead: Duration::ZERO,
            foreign: Vec::new(),
            clock: options.clock.clone(),
            journal,
        })
    }

    pub(super) const fn genesis(&self) -> &Genesis {
        &self.genesis
    }

    /// Produces one block at the present time; `false` if it could not be stored.
    pub(super) fn produce(&mut self) -> bool {
        let now = self.now();
        self.chain.produce(now);
        self.save()
    }

    /// Returns the chain's present time: the wall clock, and what control has added.
    pub(super) fn now(&self) -> Timestamp {
        (self.clock)() + self.ahead
    }

    /// Writes what happened: a block is on disk before any response shows it. If that fails, the chain in memory is ahead
    /// of its file and is no longer valid: `false` ends the ledger.
    pub(super) fn save(&mut self) -> bool {
        let records = self.chain.take_records();
        let Some(journal) = &mut self.journal else { return true };
        match journal.append(&records) {
            Ok(()) => true,
            Err(failure) => {
                error!(error = %failure, "the dev ledger stops: it cannot write its state");
                false
            }
        }
    }
}
