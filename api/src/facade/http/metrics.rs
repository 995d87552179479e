//! Metrics of the facade: responses by status, latency, connections.

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

use crate::facade::http::deadlines::Overdue;

/// The metrics of the facade. Counters are created once: a response costs an atomic add and the lock of a histogram.
#[derive(Debug)]
pub(crate) struct Metrics {
    family: Family<[(&'static str, &'static str); 1], Counter>,
    /// The same counters, by index in `CLASSES`.
    answers: [Counter; CLASSES.len()],
    seconds: Histogram,
    pub(crate) connections: Gauge,
    pub(crate) connections_refused: Counter,
    timed_out: Family<[(&'static str, &'static str); 1], Counter>,
}

/// The values of the label `status`. 429 has its own.
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
    /// Counts a response.
    pub(crate) fn answered(&self, status: StatusCode, took: Duration) {
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

    /// Counts a connection that was closed because its client was too slow.
    pub(crate) fn timed_out(&self, overdue: Overdue) {
        self.timed_out.get_or_create_owned(&[("phase", overdue.as_str())]).inc();
    }

    /// Registers them under the registry's prefix.
    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register("http_responses", "HTTP responses, by status", self.family.clone());
        let help = "Latency of HTTP requests, from head to response, in seconds; of streams until their start";
        registry.register("http_seconds", help, self.seconds.clone());
        let help = "HTTP connections refused because their IP address has too many";
        registry.register("http_connections_refused", help, self.connections_refused.clone());
        let help = "HTTP connections closed by a timeout, by phase: head, idle or write";
        registry.register("http_connections_timed_out", help, self.timed_out.clone());
        registry.register("http_connections", "Open HTTP connections", self.connections.clone());
    }
}
