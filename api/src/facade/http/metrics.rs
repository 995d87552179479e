//! Metrics of the facade: responses by status, latency, connections.

use std::{fmt, time::Duration};

use http::StatusCode;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{
        MetricType,
        counter::{ConstCounter, Counter},
        family::Family,
        gauge::{ConstGauge, Gauge},
        histogram::{Histogram, exponential_buckets},
    },
    registry::Registry,
};
use proto::Engine;

use crate::facade::http::timeouts::TimeoutPhase;

/// The metrics of the facade. Its counters are created at the start, so recording a response needs no lookup.
#[derive(Debug)]
pub(crate) struct Metrics {
    /// Responses by status class.
    family: Family<[(&'static str, &'static str); 1], Counter>,
    /// The same counters, indexed like `CLASSES`.
    responses: [Counter; CLASSES.len()],
    seconds: Histogram,
    pub(crate) connections: Gauge,
    pub(crate) connections_refused: Counter,
    timed_out: Family<[(&'static str, &'static str); 1], Counter>,
}

/// Values of the label `status`. 429 is counted separately from the other 4xx.
const CLASSES: [&str; 5] = ["2xx", "3xx", "4xx", "429", "5xx"];

impl Default for Metrics {
    fn default() -> Self {
        // 250 us, 500 us, … 8 s.
        let seconds = Histogram::new(exponential_buckets(0.000_25, 2.0, 16));
        let timed_out = Family::default();
        for phase in [TimeoutPhase::Head, TimeoutPhase::Idle, TimeoutPhase::Write] {
            drop(timed_out.get_or_create_owned(&[("phase", phase.as_str())]));
        }
        let family = Family::default();
        let responses = CLASSES.map(|class| family.get_or_create_owned(&[("status", class)]));
        Self {
            family,
            responses,
            seconds,
            connections: Gauge::default(),
            connections_refused: Counter::default(),
            timed_out,
        }
    }
}

impl Metrics {
    /// Records a response and its latency.
    pub(crate) fn record_response(&self, status: StatusCode, took: Duration) {
        let class = match status.as_u16() {
            429 => 3,
            100..300 => 0,
            300..400 => 1,
            400..500 => 2,
            _ => 4,
        };
        self.responses[class].inc();
        self.seconds.observe(took.as_secs_f64());
    }

    /// Counts a connection that was closed by a timeout.
    pub(crate) fn timed_out(&self, phase: TimeoutPhase) {
        self.timed_out.get_or_create_owned(&[("phase", phase.as_str())]).inc();
    }

    /// Registers the metrics.
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

/// Collects the state of each engine, if a facade calls several.
pub(crate) struct EnginesCollector(pub(crate) Engine);

impl fmt::Debug for EnginesCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EnginesCollector")
    }
}

/// Name, help and value of a metric of each engine.
type EngineGauge = (&'static str, &'static str, fn(&proto::EngineState) -> u64);

impl Collector for EnginesCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let states = self.0.states();
        let gauges: [EngineGauge; 3] = [
            ("facade_engine_ready", "Whether an engine of the facade reports that it is ready", |s| s.is_ready.into()),
            ("facade_engine_calls", "Calls of the facade that wait for an engine", |s| s.calls as u64),
            ("facade_engine_streams", "Streams of the facade at an engine", |s| s.streams as u64),
        ];
        for (name, help, value) in gauges {
            let mut gauge = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for state in &states {
                let value = ConstGauge::new(i64::try_from(value(state)).unwrap_or(i64::MAX));
                value.encode(gauge.encode_family(&[("engine", state.url.as_str())])?)?;
            }
        }
        let help = "Calls that failed at an engine and were repeated at another one";
        let mut counter = encoder.encode_descriptor("facade_calls_repeated", help, None, MetricType::Counter)?;
        for state in &states {
            ConstCounter::new(state.repeated).encode(counter.encode_family(&[("engine", state.url.as_str())])?)?;
        }
        Ok(())
    }
}
