//! What the facade counts: answers by their status, and how long they took.

use std::time::Duration;

use http::StatusCode;
use prometheus_client::{
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
    registry::Registry,
};

use super::deadlines::Overdue;

/// What the facade counts. The handles are made once: an answer costs an atomic and a histogram's lock.
#[derive(Debug)]
pub(super) struct Metrics {
    family: Family<[(&'static str, &'static str); 1], Counter>,
    /// The same counters, found without looking.
    answers: [Counter; CLASSES.len()],
    seconds: Histogram,
    pub(super) connections: Gauge,
    pub(super) connections_refused: Counter,
    timed_out: Family<[(&'static str, &'static str); 1], Counter>,
}

/// The statuses that are told apart. Turned away for asking too often is a class of its own.
const CLASSES: [&str; 5] = ["2xx", "3xx", "4xx", "429", "5xx"];

impl Default for Metrics {
    fn default() -> Self {
        // 250 us, 500 us, … 8 s.
        let seconds = Histogram::new(exponential_buckets(0.000_25, 2.0, 16));
        let timed_out = Family::default();
        for overdue in [Overdue::Head, Overdue::Idle, Overdue::Write] {
            drop(timed_out.get_or_create_owned(&[("phase", overdue.as_str())]));
        }
        let family = Family::default();
        let answers = CLASSES.map(|class| family.get_or_create_owned(&[("status", class)]));
        Self {
            family,
            answers,
            seconds,
            connections: Gauge::default(),
            connections_refused: Counter::default(),
            timed_out,
        }
    }
}

impl Metrics {
    /// Notes an answer.
    pub(super) fn answered(&self, status: StatusCode, took: Duration) {
        let class = match status.as_u16() {
            429 => 3,
            100..300 => 0,
            300..400 => 1,
            400..500 => 2,
            _ => 4,
        };
        self.answers[class].inc();
        self.seconds.observe(took.as_secs_f64());
    }

    /// Notes a connection that was closed because its client was too slow.
    pub(super) fn timed_out(&self, overdue: Overdue) {
        self.timed_out.get_or_create_owned(&[("phase", overdue.as_str())]).inc();
    }

    /// Shows them under the registry's prefix.
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register("http_answers", "HTTP answers, by status", self.family.clone());
        let help = "How long a request took, from its head to its answer, in seconds; streams until they began";
        registry.register("http_seconds", help, self.seconds.clone());
        let help = "HTTP connections refused because their IP address had too many";
        registry.register("http_connections_refused", help, self.connections_refused.clone());
        let help = "HTTP connections closed because their client was too slow, by phase: head, idle or write";
        registry.register("http_connections_timed_out", help, self.timed_out.clone());
        registry.register("http_connections", "HTTP connections that are open", self.connections.clone());
    }
}
