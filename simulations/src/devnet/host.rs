//! The one task that owns the chain: it executes requests one after another and produces blocks on time.

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
    Clock, Options, control,
    failure::Failure,
    faults::Faults,
    foreign::Foreign,
    journal::{Journal, JournalError},
    rpc,
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
            foreign: Vec::new(),
            clock: options.clock.clone(),
            journal,
        })
    }

    pub(super) const fn genesis(&self) -> &Genesis {
        &self.genesis
    }

    /// Executes requests and produces blocks until it is stopped.
    pub(super) async fn run(mut self, mut inbox: mpsc::Receiver<Request>, mut stopped: watch::Receiver<bool>) {
        let mut next_block = Instant::now() + self.block_interval;
        loop {
            tokio::select! {
                biased;
                _ = stopped.changed() => break,
                () = sleep_until(next_block), if self.auto_produce => {
                    if !self.produce() {
                        break;
                    }
                    next_block = (next_block + self.block_interval).max(Instant::now());
                }
                request = inbox.recv() => match request {
                    Some(request) => {
                        let was_auto = self.auto_produce;
                        if !self.answer(request) {
                            break;
                        }
                        if self.auto_produce && !was_auto {
                            next_block = Instant::now() + self.block_interval;
                        }
                    }
                    None => break,
                },
            }
        }
    }

    /// Executes one request; `false` if its effect could not be stored, in which case it gets no response.
    fn answer(&mut self, request: Request) -> bool {
        match request {
            Request::Rpc { node, body, reply } => {
                let answer = rpc::answer_node(self, node, &body);
                self.save() && delivered(reply.send(answer))
            }
            Request::ControlBody { body, reply } => {
                let body = rpc::answer(&body, |method, params| control::call(self, method, params));
                self.save()
                    && delivered(reply.send(Answer::Reply {
                        status: 200,
                        body,
                        delay: Duration::ZERO,
                        retry_after: None,
                    }))
            }
            Request::Control { method, params, reply } => {
                let result = control::call(self, &method, &params);
                self.save() && delivered(reply.send(result))
            }
        }
    }

    /// Produces one block at the present time; `false` if it could not be stored.
    fn produce(&mut self) -> bool {
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
    fn save(&mut self) -> bool {
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

/// The caller may have disconnected meanwhile; the ledger continues.
fn delivered<T>(_sent: Result<(), T>) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn a_ledger_that_cannot_write_stops_and_reveals_nothing_that_is_not_durable() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("chain");
        let clock = Arc::new(|| Timestamp::from_seconds(1_800_000_000));
        let options = Options::new(Genesis::demo([7; 32], clock()), clock);
        let options = Options { auto_produce: false, state: Some(path.clone()), ..options };
        let mut host = Host::open(&options).unwrap();
        assert!(host.produce());
        host.journal.as_mut().unwrap().fail_from_now_on();
        let (requests, inbox) = mpsc::channel(1);
        let (_stop, stopped) = watch::channel(false);
        let running = tokio::spawn(host.run(inbox, stopped));
        let (reply, answer) = oneshot::channel();
        let request = Request::Control { method: "control.produce".into(), params: json!({}), reply };
        requests.send(request).await.unwrap_or_else(|_| panic!("the ledger still listens"));
        assert!(answer.await.is_err(), "no answer");
        running.await.unwrap();
        let after = Host::open(&options).unwrap();
        assert_eq!(after.chain.head().number(), 1);
    }
}
