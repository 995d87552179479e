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

/// What the facade counts. The handles are made once: an answer costs an atomic and a histogram's lock.
#[derive(Debug)]
pub(super) struct Metrics {
    family: Family<[(&'static str, &'static str); 1], Counter>,
    /// The same counters, found without looking.
    answers: [Counter; CLASSES.len()],
    seconds: Histogram,
    pub(super) connections: Gauge,
}

/// The statuses that are told apart. Turned away for asking too often is a class of its own.
const CLASSES: [&str; 5] = ["2xx", "3xx", "4xx", "429", "5xx"];

impl Default for Metrics {
    fn default() -> Self {
        // 250 us, 500 us, … 8 s.
        let seconds = Histogram::new(exponential_buckets(0.000_25, 2.0, 16));
        let family = Family::default();
        let answers = CLASSES.map(|class| family.get_or_create_owned(&[("status", class)]));
        Self { family, answers, seconds, connections: Gauge::default() }
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

    /// Shows them under the registry's prefix.
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register("http_answers", "HTTP answers, by status", self.family.clone());
        let help = "How long a request took, from its head to its answer, in seconds; streams until they began";
        registry.register("http_seconds", help, self.seconds.clone());
        registry.register("http_connections", "HTTP connections that are open", self.connections.clone());
    }
}
