//! Metrics of the gRPC port.

use std::sync::Arc;

use prometheus_client::{
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
    registry::Registry,
};
use tokio::time::Instant;
use tonic::Code;

/// The label of unknown methods.
const UNKNOWN: &str = "unknown";

/// The metrics of a process's gRPC servers. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Metrics(Arc<Families>);

/// A latency histogram for each method.
type LatencyFamily = Family<[(&'static str, &'static str); 1], Histogram, fn() -> Histogram>;

#[derive(Debug)]
struct Families {
    handled: Family<[(&'static str, &'static str); 2], Counter>,
    latency: LatencyFamily,
    open: Gauge,
}

impl Default for Families {
    fn default() -> Self {
        let families =
            Self { handled: Family::default(), latency: Family::new_with_constructor(buckets), open: Gauge::default() };
        // The text format omits a family without members.
        drop(families.handled.get_or_create(&[("method", UNKNOWN), ("code", name(Code::Unimplemented))]));
        drop(families.latency.get_or_create(&[("method", UNKNOWN)]));
        families
    }
}

/// 250 us, 500 us, … 8 s.
fn buckets() -> Histogram {
    Histogram::new(exponential_buckets(0.000_25, 2.0, 16))
}

impl Metrics {
    /// Registers the metrics under the registry's prefix.
    pub(crate) fn register(&self, registry: &mut Registry) {
        let help = "Completed gRPC calls, by method and status code";
        registry.register("grpc_server_handled", help, self.0.handled.clone());
        let help = "Latency of completed gRPC calls, in seconds; of streams their whole duration";
        registry.register("grpc_server_handling_seconds", help, self.0.latency.clone());
        registry.register("grpc_server_open_calls", "Open gRPC calls and streams", self.0.open.clone());
    }

    /// Counts the start of a call to the method at `path`.
    pub(super) fn begin(&self, path: &str) -> Call {
        let method = proto::METHODS.iter().find(|known| **known == path).map_or(UNKNOWN, |known| &known[1..]);
        self.0.open.inc();
        Call { metrics: self.clone(), method, started_at: Instant::now() }
    }
}

/// A call in progress.
#[derive(Debug)]
pub(super) struct Call {
    metrics: Metrics,
    method: &'static str,
    started_at: Instant,
}

impl Call {
    pub(super) const fn method(&self) -> &'static str {
        self.method
    }

    /// Counts the end of the call. Returns its latency.
    pub(super) fn end(self, code: Code) -> std::time::Duration {
        let elapsed = self.started_at.elapsed();
        let families = &self.metrics.0;
        families.open.dec();
        families.handled.get_or_create(&[("method", self.method), ("code", name(code))]).inc();
        families.latency.get_or_create(&[("method", self.method)]).observe(elapsed.as_secs_f64());
        elapsed
    }
}

/// Returns the name of a code as gRPC's documentation writes it.
const fn name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}
