//! The one task that owns the chain: it answers requests one after another and makes blocks in time.

use std::time::Duration;

use bytes::Bytes;
use engine::time::Timestamp;
use serde_json::Value;
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::{Instant, sleep_until},
};
use tracing::{error, info};

use super::{
    Clock, Options,
    control::{self, Faults},
    failure::Failure,
    journal::{Journal, JournalError},
    rpc,
};
use crate::ledger::{Chain, Genesis};

/// What comes in.
pub(super) enum Request {
    /// The body of a request to a node.
    Rpc { node: usize, body: Bytes, reply: oneshot::Sender<Answer> },
    /// The body of a request to control.
    ControlBody { body: Bytes, reply: oneshot::Sender<Answer> },
    /// A call of control from this process.
    Control { method: String, params: Value, reply: oneshot::Sender<Result<Value, Failure>> },
}

/// What goes back.
pub(super) enum Answer {
    /// A body, after a delay.
    Reply { status: u16, body: Vec<u8>, delay: Duration },
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
    clock: Clock,
    journal: Option<Journal>,
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
            clock: options.clock.clone(),
            journal,
        })
    }

    pub(super) const fn genesis(&self) -> &Genesis {
        &self.genesis
    }

    /// Answers and produces until it is told to stop.
    pub(super) async fn run(mut self, mut inbox: mpsc::Receiver<Request>, mut stopped: watch::Receiver<bool>) {
        let mut next_block = Instant::now() + self.block_interval;
        loop {
            tokio::select! {
                biased;
                _ = stopped.changed() => break,
                () = sleep_until(next_block), if self.auto_produce => {
                    self.produce();
                    next_block = (next_block + self.block_interval).max(Instant::now());
                }
                request = inbox.recv() => match request {
                    Some(request) => {
                        let was_auto = self.auto_produce;
                        self.answer(request);
                        if self.auto_produce && !was_auto {
                            next_block = Instant::now() + self.block_interval;
                        }
                    }
                    None => break,
                },
            }
        }
    }

    fn answer(&mut self, request: Request) {
        // Whoever asked may have gone; then nobody hears the answer.
        match request {
            Request::Rpc { node, body, reply } => {
                let answer = rpc::answer_node(self, node, &body);
                self.save();
                let _ = reply.send(answer);
            }
            Request::ControlBody { body, reply } => {
                let body = rpc::answer(&body, |method, params| control::call(self, method, params));
                self.save();
                let _ = reply.send(Answer::Reply { status: 200, body, delay: Duration::ZERO });
            }
            Request::Control { method, params, reply } => {
                let result = control::call(self, &method, &params);
                self.save();
                let _ = reply.send(result);
            }
        }
    }

    /// Makes one block at the present time.
    pub(super) fn produce(&mut self) {
        let now = self.now();
        self.chain.produce(now);
        self.save();
    }

    /// Returns the chain's present time: the wall clock, and what control has added.
    pub(super) fn now(&self) -> Timestamp {
        (self.clock)() + self.ahead
    }

    /// Writes what happened; a block is on disk before anybody hears of it.
    fn save(&mut self) {
        let records = self.chain.take_records();
        if let Some(journal) = &mut self.journal
            && let Err(failure) = journal.append(&records)
        {
            // The chain in memory is now ahead of the file; going on would make a gap in it.
            error!(error = %failure, "the dev ledger cannot write its state and keeps nothing from here on");
            self.journal = None;
        }
    }
}
