//! The health of each node, derived from its last responses, logged once per change and exported as metrics.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use engine::{ledger::Head, mutant, time::Timestamp};
use tokio::time::Instant;

use super::{expected::Expected, majority};
use crate::{
    environment::{Identity, Node, NodeError},
    metrics::{Metrics, NodeMetrics},
};

/// Latency above which a node is slow. It stays slow until its latency is below half of this (hysteresis).
const SLOW: Duration = Duration::from_secs(1);
/// Latencies are rounded down to a multiple of this before nodes are ordered.
const LATENCY_STEP: Duration = Duration::from_millis(100);
/// How long a node counts as disagreeing after a response that a majority contradicts.
const DISAGREEMENT_WINDOW: Duration = Duration::from_secs(600);
/// Maximum duration of a request for the head, after which another may start.
const HEAD_REQUEST_TIMEOUT: Duration = Duration::from_secs(300);
/// The API for histories and virtual operations; many nodes do not serve it.
pub(super) const HISTORY_API: &str = "account_history_api";
/// The API for the status of transactions; some nodes do not serve it.
pub(super) const TRANSACTION_API: &str = "transaction_status_api";
/// APIs that a healthy node may lack, and the time before a node is queried again for one that it lacks.
const OPTIONAL_APIS: [&str; 2] = [HISTORY_API, TRANSACTION_API];
const API_RECHECK_INTERVAL: Duration = Duration::from_secs(50);
/// Backoff after a rate limit without `Retry-After`, and maximum backoff.
const DEFAULT_BACKOFF: Duration = Duration::from_secs(2);
const MAX_BACKOFF: Duration = Duration::from_secs(600);

/// The condition of a ledger node, from healthy to unhealthy. Queries go to the healthiest nodes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Condition {
    /// Responds in time and agrees with the other nodes.
    Ok,
    /// Has not responded since the process started.
    Unknown,
    /// Responds slowly.
    Slow,
    /// Its head is behind the head of a majority.
    Stale,
    /// A majority recently contradicted one of its responses.
    Disagreeing,
    /// Its last request failed.
    Failing,
    /// Rate-limits our requests; not queried until its backoff ends.
    RateLimited,
}

impl Condition {
    /// Every condition, from healthy to unhealthy.
    pub const ALL: [Self; 7] =
        [Self::Ok, Self::Unknown, Self::Slow, Self::Stale, Self::Disagreeing, Self::Failing, Self::RateLimited];

    /// Returns its name in logs, metrics and responses.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Unknown => "unknown",
            Self::Slow => "slow",
            Self::Stale => "stale",
            Self::Disagreeing => "disagreeing",
            Self::Failing => "failing",
            Self::RateLimited => "rate_limited",
        }
    }
}

/// The last known state of a ledger node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeState {
    /// Its host, and port if it has one.
    pub name: String,
    /// Its condition.
    pub condition: Condition,
    /// Consecutive failed requests.
    pub failures: u32,
    /// Time of its last response; `None` if it has not responded since the process started.
    pub answered_at: Option<Timestamp>,
    /// End of its backoff after a rate limit.
    pub backoff_until: Option<Timestamp>,
    /// Number of the newest block it reported.
    pub head_num: Option<u32>,
}

/// A node and its health.
pub(crate) struct Slot {
    pub(crate) node: Arc<dyn Node>,
    health: Mutex<Health>,
    metrics: NodeMetrics,
}

#[derive(Debug, Default)]
struct Health {
    failures: u32,
    is_checked: bool,
    answered_at: Option<Timestamp>,
    backoff_until: Option<Instant>,
    head: Option<Head>,
    /// When the pending request for the head started.
    head_asked_at: Option<Instant>,
    is_slow: bool,
    /// Moving average of the latency of head requests; `None` before the first.
    latency: Option<Duration>,
    disagreed_at: Option<Instant>,
    /// APIs that it does not serve, with the time that was discovered.
    lacks: BTreeMap<&'static str, Instant>,
    logged: Option<Condition>,
}

impl Health {
    fn condition(&self, now: Instant, expected: &Expected) -> Condition {
        let is_waiting = self.head_asked_at.is_some_and(|at| now.duration_since(at) > SLOW);
        if self.backoff_until.is_some_and(|until| now < until) {
            Condition::RateLimited
        } else if self.failures > 0 {
            Condition::Failing
        } else if self.disagreed_at.is_some_and(|at| now.duration_since(at) < DISAGREEMENT_WINDOW)
            && !mutant!("disagreement-never-known")
        {
            Condition::Disagreeing
        } else if self.head.is_some_and(|head| !majority::is_fresh(head.block_id.number(), expected.reached())) {
            Condition::Stale
        } else if (self.is_slow || is_waiting) && !mutant!("slowness-never-known") {
            Condition::Slow
        } else if self.answered_at.is_none() {
            Condition::Unknown
        } else {
            Condition::Ok
        }
    }
}

impl Slot {
    pub(crate) fn new(node: Arc<dyn Node>, metrics: &Metrics) -> Self {
        let metrics = metrics.node(node.name(), Condition::ALL.map(Condition::as_str));
        Self { node, health: Mutex::default(), metrics }
    }

    fn health<T>(&self, look: impl FnOnce(&mut Health) -> T) -> T {
        look(&mut self.health.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn is_checked(&self) -> bool {
        self.health(|health| health.is_checked)
    }

    /// Records that the node serves the configured chain.
    pub(crate) fn checked(&self, identity: &Identity) {
        tracing::debug!(node = self.node.name(), version = %identity.version, "the node serves the configured chain");
        self.health(|health| health.is_checked = true);
    }

    /// Returns whether the node is in backoff after a rate limit.
    pub(crate) fn is_backing_off(&self) -> bool {
        self.health(|health| health.backoff_until.is_some_and(|until| Instant::now() < until))
    }

    /// Returns whether the node recently reported that it does not serve an API.
    pub(crate) fn lacks(&self, request: &'static str) -> bool {
        self.health(|health| health.lacks.get(request).is_some_and(|since| since.elapsed() < API_RECHECK_INTERVAL))
    }

    pub(crate) fn condition(&self, expected: &Expected) -> Condition {
        self.health(|health| health.condition(Instant::now(), expected))
    }

    /// Returns the latency from the last responses and the pending request, rounded down to [`LATENCY_STEP`].
    pub(crate) fn latency(&self) -> Duration {
        self.health(|health| {
            let under_way = health.head_asked_at.map_or(Duration::ZERO, |at| at.elapsed());
            let latency = under_way.max(health.latency.unwrap_or_default());
            LATENCY_STEP * u32::try_from(latency.as_millis() / LATENCY_STEP.as_millis()).unwrap_or(u32::MAX)
        })
    }

    /// Records a response or failure.
    pub(crate) fn answered<T>(
        &self,
        request: &'static str,
        answer: &Result<T, NodeError>,
        begun: Instant,
        now: Timestamp,
    ) {
        match answer {
            Err(error) if error.lacks_api() && OPTIONAL_APIS.contains(&request) => self.lacks_request(request, error),
            Err(NodeError::RateLimited { retry_after }) => {
                self.metrics.failed();
                let retry_after = retry_after.filter(|_| !mutant!("retry-after-ignored"));
                let until = Instant::now() + retry_after.unwrap_or(DEFAULT_BACKOFF).min(MAX_BACKOFF);
                // A response to an earlier request may contain a shorter backoff.
                self.health(|health| health.backoff_until = health.backoff_until.max(Some(until)));
            }
            Err(error) if error.is_the_nodes_fault() => self.failed(error),
            // A refusal by the rules of the ledger is a valid response.
            _ => {
                self.metrics.answered(begun.elapsed());
                self.health(|health| {
                    (health.failures, health.answered_at) = (0, Some(now));
                    health.lacks.remove(request);
                });
            }
        }
    }

    fn lacks_request(&self, request: &'static str, error: &NodeError) {
        if self.health(|health| health.lacks.insert(request, Instant::now())).is_none() {
            let node = self.node.name();
            tracing::warn!(node, request, %error, "node {node} does not support {request}, so it is not used for it: {error}");
        }
    }

    /// Records a failed request.
    pub(crate) fn failed(&self, error: &NodeError) {
        self.metrics.failed();
        let failures = self.health(|health| {
            health.failures = health.failures.saturating_add(1);
            health.failures
        });
        // Logs the first failure and then one in a thousand, so that a dead node does not flood the log.
        if failures == 1 || failures.is_multiple_of(1_000) {
            let node = self.node.name();
            tracing::warn!(node, failures, %error, "node {node} failed: {error}");
        }
    }

    /// Records that a majority contradicts a response of the node.
    pub(crate) fn record_contradiction(&self, about: &str) {
        let now = Instant::now();
        self.metrics.record_contradiction();
        let is_new = self.health(|health| {
            let is_old = health.disagreed_at.is_none_or(|at| now.duration_since(at) >= DISAGREEMENT_WINDOW);
            health.disagreed_at = Some(now);
            is_old
        });
        if is_new {
            let node = self.node.name();
            tracing::warn!(node, about, "node {node} contradicts the majority on {about}");
        }
    }

    /// Marks the start of a head request; returns `false` while an earlier one is pending.
    pub(crate) fn begin_head_request(&self) -> bool {
        self.health(|health| {
            let is_idle = health.head_asked_at.is_none_or(|at| at.elapsed() > HEAD_REQUEST_TIMEOUT);
            if is_idle {
                health.head_asked_at = Some(Instant::now());
            }
            is_idle
        })
    }

    /// Records the response to a head request.
    pub(crate) fn end_head_request(&self, answer: &Result<Head, NodeError>) {
        self.health(|health| {
            let took = health.head_asked_at.take().map_or(Duration::ZERO, |at| at.elapsed());
            if let Ok(head) = answer {
                health.head = Some(*head);
                health.latency = Some(health.latency.map_or(took, |before| (before + took) / 2));
                health.is_slow = took > if health.is_slow { SLOW / 2 } else { SLOW };
            }
        });
        if let Ok(head) = answer {
            self.metrics.set_head(head.block_id.number());
        }
    }

    /// Returns the newest head that the node reported.
    pub(crate) fn head(&self) -> Option<Head> {
        self.health(|health| health.head)
    }

    /// Updates the condition's metric, and logs the condition if it changed.
    pub(crate) fn publish_condition(&self, expected: &Expected) {
        let now = Instant::now();
        let (condition, before, head) = self.health(|health| {
            let condition = health.condition(now, expected);
            // The first condition of a node is logged only if it is not ok.
            let before = health.logged.unwrap_or(Condition::Ok);
            if condition != Condition::Unknown {
                health.logged = Some(condition);
            }
            (condition, before, health.head)
        });
        self.metrics.is_in(condition.as_str());
        if condition == before || condition == Condition::Unknown {
            return;
        }
        let (node, state) = (self.node.name(), condition.as_str());
        let head = head.map(|head| head.block_id.number());
        if condition == Condition::Ok {
            tracing::info!(node, state, "node {node} is ok again");
        } else {
            let reached = expected.reached();
            tracing::warn!(node, state, head, reached, "node {node} is {state}");
        }
    }

    pub(crate) fn state(&self, now: Timestamp, expected: &Expected) -> NodeState {
        let instant = Instant::now();
        self.health(|health| NodeState {
            name: self.node.name().to_owned(),
            condition: health.condition(instant, expected),
            failures: health.failures,
            answered_at: health.answered_at,
            backoff_until: health.backoff_until.filter(|until| instant < *until).map(|until| now + (until - instant)),
            head_num: health.head.map(|head| head.block_id.number()),
        })
    }
}
