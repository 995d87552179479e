//! Metrics of the engine: counters created once.
//!
//! The engine never reads them back, so they do not influence a simulation.

use std::{
    collections::BTreeSet,
    fmt,
    sync::{Mutex, PoisonError},
};

use crate::{child::Child, duties::DutyMetrics, store_client::StoreMetrics};
use engine::{
    hive::block::{OTHER_OPERATIONS, UNKNOWN_OPERATIONS_MAX},
    payment::{Payment, State},
    reconciliation::Outcome,
};
use prometheus_client::{
    encoding::{EncodeMetric, MetricEncoder},
    metrics::{
        MetricType, TypedMetric,
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
    registry::Registry,
};

type Label = [(&'static str, &'static str); 1];
type TwoLabels = [(&'static str, &'static str); 2];
type NodeLabel = [(&'static str, String); 1];
type ConditionLabels = [(&'static str, String); 2];

/// The metrics of an engine.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    pub(crate) created: Counter,
    pub(crate) store: StoreMetrics,
    pub(crate) duties: DutyMetrics,
    transitions: Family<Label, Counter>,
    pub(crate) reversed: Counter,
    pub(crate) unmatched: Counter,
    pub(crate) active: Gauge,
    reconciliations: Family<Label, Counter>,
    pub(crate) reconciliation_differences: Counter,
    crashes: Family<Label, Counter>,
    pub(crate) blocks: Counter,
    pub(crate) clock_jumps: Counter,
    webhooks: Family<Label, Counter>,
    webhook_seconds: Family<Label, Seconds>,
    x402: Family<TwoLabels, Counter>,
    node_responses: Family<NodeLabel, Counter>,
    node_failures: Family<NodeLabel, Counter>,
    node_seconds: Family<NodeLabel, Seconds>,
    node_up: Family<NodeLabel, Gauge>,
    node_head: Family<NodeLabel, Gauge>,
    node_condition: Family<ConditionLabels, Gauge>,
    node_contradictions: Family<NodeLabel, Counter>,
    unknown_operations: Family<NodeLabel, Counter>,
    /// Maximum number of labels of unknown operations, whatever blocks contain.
    unknown_kinds: Mutex<BTreeSet<String>>,
}

/// Buckets of durations: 1 ms, 2 ms, … 16 s.
#[derive(Debug, Clone)]
struct Seconds(Histogram);

impl Default for Seconds {
    fn default() -> Self {
        Self(Histogram::new(exponential_buckets(0.001, 2.0, 15)))
    }
}

impl TypedMetric for Seconds {
    const TYPE: MetricType = MetricType::Histogram;
}

impl EncodeMetric for Seconds {
    fn encode(&self, encoder: MetricEncoder<'_>) -> fmt::Result {
        self.0.encode(encoder)
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

impl Metrics {
    /// Records the new state of a payment.
    pub(crate) fn reached(&self, state: State) {
        self.transitions.get_or_create(&[("status", state.as_str())]).inc();
    }

    /// Records the outcome of a daily reconciliation.
    pub(crate) fn record_reconciliation(&self, outcome: Outcome) {
        self.reconciliations.get_or_create(&[("outcome", outcome.as_str())]).inc();
    }

    /// Records the outcome of a webhook attempt.
    pub(crate) fn attempted(&self, outcome: &'static str, took: std::time::Duration) {
        self.webhooks.get_or_create(&[("outcome", outcome)]).inc();
        self.webhook_seconds.get_or_create(&[("outcome", outcome)]).0.observe(took.as_secs_f64());
    }

    /// Records the verdict on an x402 payment.
    pub(crate) fn judged(&self, operation: &'static str, verdict: &'static str) {
        self.x402.get_or_create(&[("operation", operation), ("verdict", verdict)]).inc();
    }

    /// Records the crash of an actor.
    pub(crate) fn crashed(&self, actor: &'static str) {
        self.crashes.get_or_create(&[("actor", actor)]).inc();
    }

    /// Counts operations of an unknown kind; returns whether it is the first of its kind.
    pub(crate) fn unknown_operation(&self, kind: &str, count: u32) -> bool {
        let mut kinds = self.unknown_kinds.lock().unwrap_or_else(PoisonError::into_inner);
        let is_kept = kinds.contains(kind) || kinds.len() < UNKNOWN_OPERATIONS_MAX;
        let label = if is_kept { kind } else { OTHER_OPERATIONS };
        let is_first = kinds.insert(label.to_owned());
        self.unknown_operations.get_or_create_owned(&[("kind", label.to_owned())]).inc_by(count.into());
        is_first
    }

    /// Returns the metrics of a node.
    pub(crate) fn node(&self, name: &str, conditions: impl IntoIterator<Item = &'static str>) -> NodeMetrics {
        let label = [("node", name.to_owned())];
        NodeMetrics {
            responses: self.node_responses.get_or_create_owned(&label),
            failures: self.node_failures.get_or_create_owned(&label),
            seconds: self.node_seconds.get_or_create_owned(&label),
            up: self.node_up.get_or_create_owned(&label),
            head: self.node_head.get_or_create_owned(&label),
            contradictions: self.node_contradictions.get_or_create_owned(&label),
            conditions: conditions
                .into_iter()
                .map(|condition| {
                    let labels = [("node", name.to_owned()), ("condition", condition.to_owned())];
                    (condition, self.node_condition.get_or_create_owned(&labels))
                })
                .collect(),
        }
    }

    /// Registers all metrics under the registry's prefix.
    pub(crate) fn register(&self, registry: &mut Registry) {
        let mut metric = Adder(registry);
        metric.add("payments_created", "Payments created", &self.created);
        metric.add("payment_transitions", "State changes of payments, by the new state", &self.transitions);
        metric.add("settlements_reversed", "Completed payments whose transaction a fork removed", &self.reversed);
        metric.add("unmatched_transfers", "Transfers that match no payment", &self.unmatched);
        metric.add(
            "reconciliation_checks",
            "Daily comparisons of the store with the ledger, by outcome",
            &self.reconciliations,
        );
        metric.add(
            "reconciliation_differences",
            "Operations on which the store and the ledger differ",
            &self.reconciliation_differences,
        );
        metric.add("sessions_active", "Active sessions (held in memory)", &self.active);
        metric.add("actor_crashes", "Crashes of actors, by actor", &self.crashes);
        metric.add("clock_jumps", "Jumps of the system clock by more than two seconds", &self.clock_jumps);
        metric.add("scanner_blocks", "Irreversible blocks read", &self.blocks);
        metric.add("webhook_attempts", "Attempts to deliver a webhook, by outcome", &self.webhooks);
        metric.add("webhook_seconds", "Latency of attempts to deliver a webhook, in seconds", &self.webhook_seconds);
        let store = &self.store;
        metric.add("store_unavailable", "Whether the store cannot be reached", &store.unavailable);
        metric.add(
            "store_retries",
            "Retries of reads and commits while the store could not be reached",
            &store.retries,
        );
        metric.add("commits_resolved", "Commits of unknown outcome, by what they turned out to be", &store.resolved);
        metric.add(
            "duty_held",
            "Duties that this engine holds, by kind: 1, and of webhooks the number of buckets",
            &self.duties.held,
        );
        metric.add("engines", "Engines that use the store, as far as this one knows", &self.duties.engines);
        metric.add("x402_verdicts", "Verdicts on x402 payments, by operation and verdict", &self.x402);
        metric.add("node_responses", "Requests to which the ledger node responded", &self.node_responses);
        metric.add("node_failures", "Requests that the ledger node failed", &self.node_failures);
        metric.add("node_seconds", "Latency of requests to the ledger node, in seconds", &self.node_seconds);
        metric.add("node_up", "Whether the last request to the ledger node succeeded", &self.node_up);
        metric.add("node_head_block", "Head block of the ledger node", &self.node_head);
        metric.add("node_condition", "Whether the ledger node is in the condition of the label", &self.node_condition);
        metric.add(
            "node_contradictions",
            "Responses of the ledger node that contradict a majority",
            &self.node_contradictions,
        );
        let help =
            "Operations in irreversible blocks, including virtual ones, of a kind that this version does not know";
        metric.add("unknown_operations", help, &self.unknown_operations);
        self.create_series();
    }

    /// Creates the series whose labels are known, so that they exist from the start: an alarm must not wait for the first
    /// event.
    fn create_series(&self) {
        drop(self.unknown_operations.get_or_create(&[("kind", OTHER_OPERATIONS.to_owned())]));
        for state in State::ALL.into_iter().filter(|state| *state != State::Pending) {
            drop(self.transitions.get_or_create(&[("status", state.as_str())]));
        }
        for outcome in Outcome::ALL {
            drop(self.reconciliations.get_or_create(&[("outcome", outcome.as_str())]));
        }
        drop(self.webhooks.get_or_create(&[("outcome", "success")]));
        drop(self.webhook_seconds.get_or_create(&[("outcome", "success")]));
        drop(self.crashes.get_or_create(&[("actor", "session")]));
        for operation in ["verify", "settle"] {
            drop(self.x402.get_or_create(&[("operation", operation), ("verdict", "success")]));
        }
        for outcome in StoreMetrics::OUTCOMES {
            drop(self.store.resolved.get_or_create(&[("outcome", outcome)]));
        }
        for child in Child::ALL {
            drop(self.crashes.get_or_create(&[("actor", child.as_str())]));
        }
    }
}

struct Adder<'r>(&'r mut Registry);

impl Adder<'_> {
    fn add(&mut self, name: &str, help: &str, metric: &(impl prometheus_client::registry::Metric + Clone)) {
        self.0.register(name, help, metric.clone());
    }
}

/// The metrics of a node.
#[derive(Debug)]
pub(crate) struct NodeMetrics {
    responses: Counter,
    failures: Counter,
    seconds: Seconds,
    up: Gauge,
    head: Gauge,
    contradictions: Counter,
    conditions: Vec<(&'static str, Gauge)>,
}

impl NodeMetrics {
    pub(crate) fn record_response(&self, took: std::time::Duration) {
        self.responses.inc();
        self.seconds.0.observe(took.as_secs_f64());
        self.up.set(1);
    }

    pub(crate) fn failed(&self) {
        self.failures.inc();
        self.up.set(0);
    }

    /// Records a response that a majority contradicts.
    pub(crate) fn record_contradiction(&self) {
        self.contradictions.inc();
    }

    /// Updates the node's condition.
    pub(crate) fn is_in(&self, condition: &'static str) {
        for (each, gauge) in &self.conditions {
            gauge.set(i64::from(*each == condition));
        }
    }

    pub(crate) fn set_head(&self, num: u32) {
        self.head.set(num.into());
    }
}

/// Records the changes of a step of a payment's state machine.
pub(crate) fn stepped(metrics: &Metrics, before: &Payment, after: &Payment) {
    if before.state != after.state {
        metrics.reached(after.state);
    }
    if after.is_reversed && !before.is_reversed {
        metrics.reversed.inc();
    }
}
