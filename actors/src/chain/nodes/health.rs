//! The health of each node: what its last answers say of it, logged once per change and shown in metrics.

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

/// A node is slow when an answer takes longer, and no longer slow when one takes less than half of it.
const SLOW: Duration = Duration::from_secs(1);
/// Latencies that differ by less than this make no difference.
const LATENCY_STEP: Duration = Duration::from_millis(100);
/// How long a node counts as disagreeing after an answer that a majority contradicts.
const DISAGREEMENT_WINDOW: Duration = Duration::from_secs(600);
/// How long a request for the head may take at most, whatever the node does.
const HEAD_REQUEST_TIMEOUT: Duration = Duration::from_secs(300);
/// The API that keeps histories and virtual operations; many nodes do without it.
pub(super) const HISTORY_API: &str = "account_history_api";
/// The API that knows the state of a transaction; some nodes do without it.
pub(super) const TRANSACTION_API: &str = "transaction_status_api";
/// The APIs that a healthy node may do without, and how long it is not asked again for one that it lacks.
const OPTIONAL_APIS: [&str; 2] = [HISTORY_API, TRANSACTION_API];
const API_RECHECK_INTERVAL: Duration = Duration::from_secs(50);
/// How long a node that limits the rate is left alone if it does not say, and at most.
const DEFAULT_BACKOFF: Duration = Duration::from_secs(2);
const MAX_BACKOFF: Duration = Duration::from_secs(600);

/// The condition of a ledger node, from good to bad. Blocks are read from the best nodes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Condition {
    /// It answers in time and agrees with the others.
    Ok,
    /// It has not answered since this process began.
    Unknown,
    /// It answers late.
    Slow,
    /// Its head is behind the head that a majority has reached.
    Stale,
    /// A majority contradicted an answer of it lately.
    Disagreeing,
    /// Its last request failed.
    Failing,
    /// It limits our rate, and is left alone until it takes requests again.
    RateLimited,
}

impl Condition {
    /// Every condition, from good to bad.
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

/// The state of a ledger node, as far as it was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeState {
    /// Its host, and port if there is one.
    pub name: String,
    /// Its condition.
    pub condition: Condition,
    /// Requests in a row that it failed.
    pub failures: u32,
    /// When it last answered; none if it never did since this process began.
    pub answered_at: Option<Timestamp>,
    /// Until then it is left alone, because it limits our rate.
    pub backoff_until: Option<Timestamp>,
    /// The number of the newest block it reported.
    pub head_num: Option<u32>,
}

/// One node with what is known of it.
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
    /// When the head was asked for that is not answered yet.
    head_asked_at: Option<Instant>,
    is_slow: bool,
    /// How long answers about the head take, smoothed over some two of them; none before the first.
    latency: Option<Duration>,
    disagreed_at: Option<Instant>,
    /// APIs that it does not serve, and since when that is known.
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
        } else if self.disagreed_at.is_some_and(|at| now.duration_since(at) < DISAGREEMENT_WINDOW) {
            Condition::Disagreeing
        } else if self.head.is_some_and(|head| !majority::is_fresh(head.block_id.number(), expected.reached())) {
            Condition::Stale
        } else if self.is_slow || is_waiting {
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

    /// Notes that the node serves the chain of the settings.
    pub(crate) fn checked(&self, identity: &Identity) {
        tracing::debug!(node = self.node.name(), version = %identity.version, "the node serves the right chain");
        self.health(|health| health.is_checked = true);
    }

    /// Says whether the node wants to be left alone.
    pub(crate) fn is_backing_off(&self) -> bool {
        self.health(|health| health.backoff_until.is_some_and(|until| Instant::now() < until))
    }

    /// Says whether the node is known not to serve an API; after a while it is asked again.
    pub(crate) fn lacks(&self, request: &'static str) -> bool {
        self.health(|health| health.lacks.get(request).is_some_and(|since| since.elapsed() < API_RECHECK_INTERVAL))
    }

    pub(crate) fn condition(&self, expected: &Expected) -> Condition {
        self.health(|health| health.condition(Instant::now(), expected))
    }

    /// Returns how long an answer of it takes, by the last ones and the one under way, in steps.
    pub(crate) fn latency(&self) -> Duration {
        self.health(|health| {
            let under_way = health.head_asked_at.map_or(Duration::ZERO, |at| at.elapsed());
            let latency = under_way.max(health.latency.unwrap_or_default());
            LATENCY_STEP * u32::try_from(latency.as_millis() / LATENCY_STEP.as_millis()).unwrap_or(u32::MAX)
        })
    }

    /// Notes an answer, or what the request failed with.
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
                // An answer to an earlier request may ask for less.
                self.health(|health| health.backoff_until = health.backoff_until.max(Some(until)));
            }
            Err(error) if error.is_the_nodes_fault() => self.failed(error),
            // A refusal by the ledger's own rules is an answer, too.
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

    /// Notes a failed request.
    pub(crate) fn failed(&self, error: &NodeError) {
        self.metrics.failed();
        let failures = self.health(|health| {
            health.failures = health.failures.saturating_add(1);
            health.failures
        });
        // Once when it starts and then rarely: a dead node must not fill the log.
        if failures == 1 || failures.is_multiple_of(1_000) {
            let node = self.node.name();
            tracing::warn!(node, failures, %error, "node {node} failed: {error}");
        }
    }

    /// Notes that a majority contradicts an answer of the node.
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

    /// Begins to ask for the head; says no while an earlier request for it is not answered.
    pub(crate) fn begin_head_request(&self) -> bool {
        self.health(|health| {
            let is_idle = health.head_asked_at.is_none_or(|at| at.elapsed() > HEAD_REQUEST_TIMEOUT);
            if is_idle {
                health.head_asked_at = Some(Instant::now());
            }
            is_idle
        })
    }

    /// Notes the answer to a request for the head.
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

    /// Returns the newest head that it reported.
    pub(crate) fn head(&self) -> Option<Head> {
        self.health(|health| health.head)
    }

    /// Logs and shows the condition where it has changed.
    pub(crate) fn publish_condition(&self, expected: &Expected) {
        let now = Instant::now();
        let (condition, before, head) = self.health(|health| {
            let condition = health.condition(now, expected);
            // A node that was not asked yet is no news.
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
