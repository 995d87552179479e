//! The pool of ledger nodes: a majority of the configured nodes decides all facts that affect money.
//!
//! Every query goes through [`Shared::query`]: [`Round`] selects the nodes to query and when to wait, [`majority`]
//! decides from the responses. Callers never wait long for nodes slower than the first majority; a late response still
//! updates the health of its node.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use engine::{hive::ChainId, mutant};
use futures_util::{
    FutureExt,
    future::{BoxFuture, join_all},
};
use tokio::{
    sync::mpsc::{self, UnboundedReceiver},
    time::{Instant, sleep_until},
};

use crate::{
    chain::nodes::{
        expected::{Expected, Heads},
        health::{Condition, NodeState, Slot},
        majority,
        round::{Round, RoundStatus, Step},
    },
    environment::{Clock, Environment, Identity, Node, NodeError},
    metrics::Metrics,
    settings::Settings,
};

/// Time before the remaining nodes are queried too, and time to wait for slower nodes after a majority has responded.
pub(super) const STRAGGLER_TIMEOUT: Duration = Duration::from_millis(300);

/// Returns how many of the configured nodes must agree on facts that affect money; `at_least` can only raise it.
#[must_use]
pub fn nodes_needed(configured: usize, at_least: usize) -> usize {
    majority::needed(configured, at_least)
}

/// Why a query has no trusted result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NodesError {
    /// Too few nodes respond; contains the last failure.
    #[error("too few ledger nodes respond: {0}")]
    Unavailable(String),
    /// Too few nodes have a block that others had.
    #[error("too few nodes know the virtual operations of block {0}")]
    Unknown(u32),
    /// Enough nodes responded, but they disagree.
    #[error("{answered} nodes responded, and no {needed} of them agree on {about}")]
    Disagree {
        /// The subject of the query.
        about: String,
        /// Number of nodes that responded.
        answered: usize,
        /// How many must agree.
        needed: usize,
    },
}

/// The ledger's nodes.
pub(crate) struct Nodes {
    pub(super) shared: Arc<Shared>,
    pub(super) heads: tokio::sync::Mutex<Heads>,
}

/// State shared by the handle and the requests in flight.
pub(super) struct Shared {
    pub(super) slots: Vec<Slot>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) chain_id: ChainId,
    pub(super) development: bool,
    pub(super) needed: usize,
    pub(super) at_least: usize,
    pub(super) expected: Expected,
}

/// The result of a query.
pub(super) struct QueryResult<T, R> {
    /// The decision, if the responses permit one.
    pub(super) decision: Option<R>,
    /// Responses, each with the index of its node in the configuration.
    pub(super) answers: Vec<(usize, T)>,
    /// The last failure of a node.
    pub(super) last: String,
}

impl<T, R> QueryResult<T, R> {
    /// Returns the decision, or why there is none.
    pub(super) fn decided(self, about: impl FnOnce() -> String, needed: usize) -> Result<R, NodesError> {
        match self.decision {
            Some(decision) => Ok(decision),
            None if self.answers.len() >= needed => {
                Err(NodesError::Disagree { about: about(), answered: self.answers.len(), needed })
            }
            None => Err(NodesError::Unavailable(self.last)),
        }
    }
}

/// How a query is distributed over the nodes.
#[derive(Clone, Copy)]
pub(super) struct Plan {
    /// Name of the query in logs.
    pub(super) request: &'static str,
    /// Number of nodes queried at once; the others follow if these do not decide in time.
    pub(super) first: usize,
    /// How many nodes decide.
    pub(super) needed: usize,
    /// Time before the others are queried, and time to wait for slower nodes after a majority.
    pub(super) timeout: Duration,
}

impl Nodes {
    pub(crate) fn new(env: &Environment, settings: &Settings, metrics: &Metrics) -> Self {
        let shared = Shared {
            slots: env.nodes.iter().map(|node| Slot::new(Arc::clone(node), metrics)).collect(),
            clock: Arc::clone(&env.clock),
            chain_id: settings.chain_id,
            development: settings.development,
            needed: majority::needed(env.nodes.len(), settings.min_agreeing_nodes),
            at_least: settings.min_agreeing_nodes,
            expected: Expected::default(),
        };
        Self { shared: Arc::new(shared), heads: tokio::sync::Mutex::default() }
    }

    /// Checks which chain every node serves. Unreachable nodes are checked again before their first use.
    ///
    /// # Errors
    /// [`NodeError::WrongChain`] for the first node that serves another chain.
    pub(crate) async fn check_chain(&self) -> Result<(), NodeError> {
        let (nodes, needed) = (self.shared.slots.len(), self.needed());
        tracing::info!(nodes, needed, "{needed} of {nodes} ledger nodes must agree");
        if nodes == 1 && !self.shared.development {
            tracing::warn!(
                "only one ledger node is configured, so its responses are not verified: configure three of different operators"
            );
        }
        let checked = join_all(self.shared.slots.iter().map(|slot| self.shared.check(slot))).await;
        for (slot, checked) in self.shared.slots.iter().zip(checked) {
            match checked {
                Err(wrong @ NodeError::WrongChain(_)) => return Err(wrong),
                // A node that limits the rate is in backoff from the start.
                Err(error) => {
                    slot.answered::<()>("get_version", &Err(error), Instant::now(), self.shared.clock.now());
                }
                Ok(()) => {}
            }
        }
        Ok(())
    }

    /// Returns the state of every node, in the order of the configuration.
    pub(crate) fn states(&self) -> Vec<NodeState> {
        let now = self.shared.clock.now();
        self.shared.slots.iter().map(|slot| slot.state(now, &self.shared.expected)).collect()
    }

    /// Returns the time since the head block of a majority last advanced; `None` before the first head.
    pub(crate) fn head_age(&self) -> Option<Duration> {
        self.shared.expected.age()
    }

    /// Returns how many nodes must agree.
    pub(crate) fn needed(&self) -> usize {
        self.shared.needed
    }

    /// Returns the plan of a query to all nodes at once.
    pub(super) fn to_all(&self, request: &'static str) -> Plan {
        let Shared { slots, needed, .. } = &*self.shared;
        Plan { request, first: slots.len(), needed: *needed, timeout: STRAGGLER_TIMEOUT }
    }
}

impl Shared {
    async fn check(&self, slot: &Slot) -> Result<(), NodeError> {
        if slot.is_checked() {
            return Ok(());
        }
        let identity: Identity = slot.node.identity().await?;
        let name = slot.node.name();
        if identity.chain_id != self.chain_id && !mutant!("chain-id-not-checked") {
            return Err(NodeError::WrongChain(format!("{name} has chain id {}", identity.chain_id)));
        }
        if identity.is_development != self.development {
            let what = if identity.is_development { "a development ledger" } else { "no development ledger" };
            return Err(NodeError::WrongChain(format!("{name} is {what} ({})", identity.version)));
        }
        slot.checked(&identity);
        Ok(())
    }

    /// Queries one node and records the outcome in its health.
    pub(super) async fn query_node<T>(
        &self,
        place: usize,
        request: &'static str,
        request_to: &(impl Fn(Arc<dyn Node>) -> BoxFuture<'static, Result<T, NodeError>> + Sync),
    ) -> Result<T, NodeError> {
        let slot = &self.slots[place];
        if let Err(error) = self.check(slot).await {
            slot.answered::<T>(request, &Err(error.clone()), Instant::now(), self.clock.now());
            return Err(error);
        }
        let begun = Instant::now();
        let answer = request_to(Arc::clone(&slot.node)).await;
        slot.answered(request, &answer, begun, self.clock.now());
        answer
    }

    /// Queries the nodes as planned, healthiest first, until `decide` returns a decision or no node is left. Requests that
    /// are no longer awaited are not cancelled.
    pub(super) async fn query<T: Send + 'static, U, R>(
        self: &Arc<Self>,
        plan: Plan,
        request_to: impl Fn(Arc<dyn Node>) -> BoxFuture<'static, Result<T, NodeError>> + Send + Sync + 'static,
        read: impl Fn(Result<T, NodeError>) -> Option<U>,
        decide: impl Fn(&[(usize, U)], RoundStatus) -> Option<R>,
    ) -> QueryResult<U, R> {
        let order = self.in_order(plan.request);
        let responsive = self.responsive(&order);
        let (sender, mut answers) = mpsc::unbounded_channel();
        let request_to = Arc::new(request_to);
        let query = |at: usize| {
            let (shared, request_to, sender) = (Arc::clone(self), Arc::clone(&request_to), sender.clone());
            let place = order[at];
            tokio::spawn(async move {
                let answer = catch_panic(shared.query_node(place, plan.request, &*request_to)).await;
                let _ = sender.send((at, answer));
            });
        };
        let mut round = Round::new(order.len(), plan.first, plan.needed);
        let mut last = "no node can be queried".to_owned();
        let timeout = |at: usize| if responsive[at] { plan.timeout } else { Duration::ZERO };
        let decided = drive(&mut round, &mut answers, timeout, query, decide, |at, answer| {
            if let Err(error) = &answer {
                last = self.describe(order[at], error);
            }
            read(answer)
        });
        let decision = decided.await;
        let answers = round.into_answers().into_iter().map(|(at, answer)| (order[at], answer)).collect();
        QueryResult { decision, answers, last }
    }

    /// Returns the nodes that can be queried, healthiest first; ties keep the order of the configuration.
    fn in_order(&self, request: &'static str) -> Vec<usize> {
        let can = |place: &usize| !self.slots[*place].is_backing_off() && !self.slots[*place].lacks(request);
        let mut places: Vec<usize> = (0..self.slots.len()).filter(can).collect();
        places.sort_by_key(|place| {
            let slot = &self.slots[*place];
            (slot.condition(&self.expected), slot.latency())
        });
        places
    }

    /// Returns for each of these nodes whether to wait for it after a majority has responded: it is healthy, and about
    /// as fast as the slowest node that a majority needs.
    fn responsive(&self, order: &[usize]) -> Vec<bool> {
        let latencies: Vec<Duration> = order.iter().map(|place| self.slots[*place].latency()).collect();
        let mut sorted = latencies.clone();
        sorted.sort_unstable();
        let usual = sorted.get(self.needed - 1).copied().unwrap_or(Duration::MAX);
        let is_well = |place: usize| self.slots[place].condition(&self.expected) <= Condition::Unknown;
        let places = order.iter().zip(latencies);
        places
            .map(|(place, latency)| is_well(*place) && latency < usual.saturating_add(STRAGGLER_TIMEOUT / 2))
            .collect()
    }

    /// Records that these nodes contradict a majority.
    pub(super) fn record_contradiction(&self, places: impl IntoIterator<Item = usize>, about: &str) {
        for place in places {
            self.slots[place].record_contradiction(about);
        }
    }

    pub(super) fn describe(&self, place: usize, error: &NodeError) -> String {
        format!("{}: {error}", self.slots[place].node.name())
    }

    /// Logs changed conditions and updates their metrics.
    pub(super) fn publish_condition(&self) {
        for slot in &self.slots {
            slot.publish_condition(&self.expected);
        }
    }
}

/// Returns the response to a request; a panic counts as a failure of the node.
pub(super) async fn catch_panic<T>(request: impl Future<Output = Result<T, NodeError>>) -> Result<T, NodeError> {
    let crashed = |_| Err(NodeError::Broken("the request crashed".to_owned()));
    AssertUnwindSafe(request).catch_unwind().await.unwrap_or_else(crashed)
}

/// Runs a round until it is decided; returns `None` if it cannot be. `timeout` is the time to wait for each node.
pub(super) async fn drive<T, U, R>(
    round: &mut Round<U>,
    answers: &mut UnboundedReceiver<(usize, Result<T, NodeError>)>,
    timeout: impl Fn(usize) -> Duration,
    query: impl Fn(usize),
    decide: impl Fn(&[(usize, U)], RoundStatus) -> Option<R>,
    mut read: impl FnMut(usize, Result<T, NodeError>) -> Option<U>,
) -> Option<R> {
    let (mut asked, mut waiting_since) = (0, None);
    let mut open = Vec::new();
    loop {
        let step = round.step(&decide);
        while asked < round.asked() {
            query(asked);
            open.push(asked);
            asked += 1;
        }
        match step {
            Step::Done(decision) => return Some(decision),
            Step::Undecided => return None,
            Step::QueryOthers => continue,
            Step::Wait => {}
        }
        let deadline = round.needs_timeout().then(|| {
            let longest = open.iter().map(|at| timeout(*at)).max().unwrap_or_default();
            *waiting_since.get_or_insert_with(Instant::now) + longest
        });
        tokio::select! {
            biased;
            answer = answers.recv() => match answer {
                Some((place, answer)) => {
                    open.retain(|at| *at != place);
                    round.answered(place, read(place, answer));
                }
                None => return None,
            },
            () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => {
                round.timed_out();
                waiting_since = None;
            }
        }
    }
}
