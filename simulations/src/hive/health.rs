//! A model of what the engine must know of its nodes: it follows from their responses alone.

use actors::{Condition, NodeState, environment::NodeError};

/// Latency above which a node is slow, milliseconds; it may stay slow until its latency is at most half of it.
const SLOW_MS: u64 = 1_000;
/// How many blocks a head may be behind the head that a majority has reached.
const FRESH_BLOCKS: u32 = 5;
/// How long a node may be called disagreeing after a response that others contradict, milliseconds: what it is compared with may
/// come a minute later.
const DISAGREES_MS: u64 = 660_000;
/// Backoff after a rate limit without `Retry-After`, and the longest one, milliseconds.
const BACKOFF_MS: (u64, u64) = (2_000, 600_000);
/// How long a state must differ to be wrong, milliseconds. For an account's history the engine calls for a head, too: until its
/// next own request for one the two differ.
const DIFFERS_MS: u64 = 30_000;

/// What follows from a node's responses since the process started. Times are virtual milliseconds.
#[derive(Debug, Clone, Default)]
struct NodeHealth {
    is_failing: bool,
    has_answered: bool,
    backoff_until: u64,
    head_num: Option<u32>,
    /// When the pending request for the head began.
    head_begun: Option<u64>,
    is_slow: bool,
    /// Whether the engine may measure another latency of the pending request: it counted a request for the chain id to it, or two
    /// requests for the head overlap.
    is_latency_uncertain: bool,
    /// Whether the last latency is uncertain, or between the limits, where a node stays what it was before.
    is_speed_uncertain: bool,
    /// Requests for the chain id; the first is made at the start.
    identities: u32,
    identity_ended: u64,
    /// When it last responded while it had other data than a healthy node.
    deviated_at: Option<u64>,
    /// Since when its reported state differs from the expected one, with both.
    differs: Option<(u64, Condition, Condition)>,
}

/// What follows from the responses of all nodes.
#[derive(Debug, Clone, Default)]
pub(crate) struct NodeHealths {
    nodes: Vec<NodeHealth>,
    /// The highest head that a majority has reached.
    reached: u32,
}

/// What is requested of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Request {
    Identity,
    Head,
    Other,
}

impl NodeHealths {
    /// Returns the model of a process that starts.
    pub(crate) fn new(nodes: usize) -> Self {
        Self { nodes: vec![NodeHealth::default(); nodes], reached: 0 }
    }

    /// Records that a request begins.
    pub(crate) fn begins(&mut self, node: usize, request: Request, now_ms: u64) {
        let known = &mut self.nodes[node];
        match request {
            Request::Identity => {
                known.identities += 1;
                known.is_speed_uncertain |= known.identities > 1;
            }
            Request::Head => {
                known.is_latency_uncertain =
                    known.head_begun.is_some() || known.identities > 1 && known.identity_ended == now_ms;
                known.is_speed_uncertain |= known.is_latency_uncertain;
                known.head_begun = Some(now_ms);
            }
            Request::Other => {}
        }
    }

    /// Records that a node responds with other data than a healthy one.
    pub(crate) fn deviates(&mut self, node: usize, now_ms: u64) {
        self.nodes[node].deviated_at = Some(now_ms);
    }

    /// Records that any node may respond with other data than the others.
    pub(crate) fn all_deviate(&mut self, now_ms: u64) {
        self.nodes.iter_mut().for_each(|known| known.deviated_at = Some(now_ms));
    }

    /// Records a response.
    pub(crate) fn ends(&mut self, node: usize, request: Request, failure: Option<&NodeError>, now_ms: u64) {
        let known = &mut self.nodes[node];
        if request == Request::Identity {
            known.identity_ended = now_ms;
        }
        match failure {
            Some(error) if error.lacks_api() => {}
            Some(NodeError::RateLimited { retry_after }) => {
                let asked =
                    retry_after.map_or(BACKOFF_MS.0, |asked| u64::try_from(asked.as_millis()).unwrap_or(u64::MAX));
                known.backoff_until = known.backoff_until.max(now_ms + asked.min(BACKOFF_MS.1));
            }
            Some(error) if error.is_the_nodes_fault() => known.is_failing = true,
            None if request == Request::Identity => {}
            _ => (known.is_failing, known.has_answered) = (false, true),
        }
    }

    /// Records the response to a request for the head.
    pub(crate) fn head_ends(&mut self, node: usize, head_num: Option<u32>, now_ms: u64) {
        let known = &mut self.nodes[node];
        let begun = known.head_begun.take();
        let took_ms = begun.map_or(0, |begun| now_ms - begun);
        if head_num.is_none() {
            return;
        }
        known.head_num = head_num;
        let is_between = SLOW_MS / 2 < took_ms && took_ms <= SLOW_MS;
        known.is_speed_uncertain = known.is_latency_uncertain || begun.is_none() || is_between;
        known.is_slow = took_ms > SLOW_MS;
        let mut heads: Vec<u32> = self.nodes.iter().filter_map(|known| known.head_num).collect();
        heads.sort_unstable_by(|a, b| b.cmp(a));
        self.reached = self.reached.max(heads.get(self.nodes.len() / 2).copied().unwrap_or(0));
    }

    /// Returns the first node whose reported state has differed from its responses for a while.
    pub(crate) fn differing(&mut self, states: &[NodeState], now_ms: u64) -> Option<String> {
        let reached = self.reached;
        let mut differing = None;
        for ((node, known), state) in self.nodes.iter_mut().enumerate().zip(states) {
            let (wanted, given) = (known.condition(reached, now_ms), state.condition);
            let may_disagree = known.deviated_at.is_some_and(|at| now_ms < at + DISAGREES_MS);
            let is_speed = |condition| matches!(condition, Condition::Ok | Condition::Unknown | Condition::Slow);
            let fits = given == wanted
                || (may_disagree && wanted < Condition::Disagreeing && given == Condition::Disagreeing)
                || (known.is_speed_uncertain && is_speed(given) && is_speed(wanted));
            known.differs = match known.differs {
                _ if fits => None,
                Some(differs) if (differs.1, differs.2) == (wanted, given) => Some(differs),
                _ => Some((now_ms, wanted, given)),
            };
            if known.differs.is_some_and(|(since, ..)| since + DIFFERS_MS <= now_ms) {
                differing = Some(format!(
                    "node {node} is reported as {}, and its responses show {}",
                    given.as_str(),
                    wanted.as_str()
                ));
            }
        }
        differing
    }
}

impl NodeHealth {
    /// Returns its condition, as far as it follows from its own responses.
    fn condition(&self, reached: u32, now_ms: u64) -> Condition {
        let is_waiting = self.head_begun.is_some_and(|begun| now_ms - begun > SLOW_MS);
        if now_ms < self.backoff_until {
            Condition::RateLimited
        } else if self.is_failing {
            Condition::Failing
        } else if self.head_num.is_some_and(|num| num + FRESH_BLOCKS < reached) {
            Condition::Stale
        } else if self.is_slow || is_waiting {
            Condition::Slow
        } else if !self.has_answered {
            Condition::Unknown
        } else {
            Condition::Ok
        }
    }
}
