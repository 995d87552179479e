//! Metrics for Prometheus: one registry per process, served at `GET /metrics` on `metrics.listen`.

use std::{fmt, fs, io::Write as _, path::PathBuf, sync::Arc};

use actors::Engine;
use http::{HeaderValue, Method, StatusCode, header::CONTENT_TYPE};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric, text},
    metrics::{MetricType, gauge::ConstGauge, info::Info},
    registry::Registry,
};
use tokio::{net::TcpListener, task::JoinHandle};
use warp::{Filter, path::FullPath, reply::Response};

use crate::{facade::Facade, store::OpenStore};

/// The prefix of all metric names.
const PREFIX: &str = "hivetill";
/// The content type of the OpenMetrics text format.
const OPEN_METRICS: HeaderValue =
    HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");

/// The metrics of a process.
#[derive(Debug)]
pub struct Metrics(Registry);

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix(PREFIX);
        let version = [("version", env!("CARGO_PKG_VERSION"))];
        registry.register("build", "Version of the program", Info::new(version));
        registry.register_collector(Box::new(Process));
        Self(registry)
    }
}

impl Metrics {
    /// Adds the metrics of an engine and its store in the directory `data`.
    pub fn add_engine(&mut self, engine: &Engine, store: &OpenStore, data: PathBuf) {
        engine.operations.register_metrics(&mut self.0);
        store.commit_metrics().register(&mut self.0);
        self.0.register_collector(Box::new(StoreCollector { store: store.clone(), data }));
    }

    /// Adds the metrics of the gRPC port.
    pub fn add_grpc(&mut self, grpc: &crate::service::Metrics) {
        grpc.register(&mut self.0);
    }

    /// Adds the metrics of a facade.
    pub fn add_facade(&mut self, facade: &Facade) {
        facade.register_metrics(&mut self.0);
    }

    /// Serves the metrics on `listener` until `stop` resolves, which aborts a running scrape.
    pub fn serve(self, listener: TcpListener, stop: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        let registry = Arc::new(self.0);
        let show = warp::method().and(warp::path::full()).then(move |method: Method, path: FullPath| {
            let registry = Arc::clone(&registry);
            async move {
                match (method, path.as_str()) {
                    (Method::GET | Method::HEAD, "/metrics") => encode_blocking(registry).await,
                    (_, "/metrics") => error_response(StatusCode::METHOD_NOT_ALLOWED),
                    _ => error_response(StatusCode::NOT_FOUND),
                }
            }
        });
        let served = warp::serve(show).incoming(listener).run();
        tokio::spawn(async move {
            tokio::select! {
                biased;
                () = stop => {}
                () = served => {}
            }
        })
    }
}

/// Encodes the metrics on a blocking thread, because collectors count rows in the store.
#[expect(clippy::disallowed_methods, reason = "simulations do not scrape metrics")]
async fn encode_blocking(registry: Arc<Registry>) -> Response {
    let response = tokio::task::spawn_blocking(move || encode(&registry)).await;
    response.unwrap_or_else(|_| error_response(StatusCode::INTERNAL_SERVER_ERROR))
}

fn encode(registry: &Registry) -> Response {
    let mut body = String::with_capacity(16 * 1024);
    // Never fails: writes to a string succeed.
    let _ = text::encode(&mut body, registry);
    let mut response = Response::new(body.into());
    response.headers_mut().insert(CONTENT_TYPE, OPEN_METRICS);
    response
}

fn error_response(status: StatusCode) -> Response {
    let mut response = Response::new("this port serves only GET /metrics\n".into());
    *response.status_mut() = status;
    response
}

/// Encodes integer gauges: name, help text and value. A gauge without a value is omitted.
fn encode_gauges(encoder: &mut DescriptorEncoder<'_>, gauges: &[(&str, &str, Option<u64>)]) -> fmt::Result {
    for (name, help, value) in gauges {
        if let Some(value) = value {
            let gauge = ConstGauge::new(i64::try_from(*value).unwrap_or(i64::MAX));
            gauge.encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)?;
        }
    }
    Ok(())
}

/// Collects metrics of the store and of the data directory's disk at each scrape.
struct StoreCollector {
    store: OpenStore,
    data: PathBuf,
}

impl fmt::Debug for StoreCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreCollector").field("data", &self.data).finish_non_exhaustive()
    }
}

impl Collector for StoreCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        // The gauges of an unreadable store are omitted, and `store_up` is 0.
        let figures = self.store.figures();
        let is_up = figures.is_some() && (self.store.embedded().is_none() || accepts_writes(&self.data));
        let file_bytes = fs::metadata(self.data.join(storage::FILE_NAME)).ok().map(|file| file.len());
        let free_bytes = disk_free_bytes(&self.data);
        encode_gauges(
            &mut encoder,
            &[
                ("store_up", "Whether the store can be read and written", Some(is_up.into())),
                ("store_file_bytes", "Size of the database file, in bytes", file_bytes),
                ("disk_free_bytes", "Free disk space of the data directory, in bytes", free_bytes),
            ],
        )?;
        encode_figures(&mut encoder, figures.as_ref())
    }
}

/// Encodes the row counts and queue lengths of the store.
fn encode_figures(encoder: &mut DescriptorEncoder<'_>, figures: Option<&storage::Figures>) -> fmt::Result {
    let of = |figure: fn(&storage::Figures) -> u64| figures.map(figure);
    encode_gauges(
        encoder,
        &[
            ("payments", "Stored payments", of(|f| f.payments)),
            ("sessions_open", "Pending payments, active and passivated", of(|f| f.open_payments)),
            ("sessions_in_flight", "Payments with a transaction in flight", of(|f| f.in_flight)),
            ("merchants", "Registered merchants", of(|f| f.merchants)),
            ("events", "Stored events", of(|f| f.events)),
            ("outbox_depth", "Webhooks to deliver, including retries", of(|f| f.outbox)),
            ("unmatched_waiting", "Unmatched transfers that name an unknown payment", of(|f| f.unmatched_by_payment)),
            ("commit_queue_depth", "Commits waiting for the disk", of(|f| f.queue)),
        ],
    )
}

/// The file that the write probe creates.
const PROBE: &str = "hivetill.probe";
/// The content of the probe: one disk block of the usual size.
const PROBE_BYTES: [u8; 4_096] = [0; 4_096];

/// Returns whether the disk of the data directory accepts writes. Without this probe a failed disk is detected only by the
/// next commit, whose failure shuts the engine down.
fn accepts_writes(data: &std::path::Path) -> bool {
    let path = data.join(PROBE);
    let probe = || -> std::io::Result<()> {
        let mut file = fs::File::create(&path)?;
        file.write_all(&PROBE_BYTES)?;
        file.sync_data()
    };
    let is_written = probe().is_ok();
    // If the removal fails, the next probe overwrites the file.
    let _ = fs::remove_file(&path);
    is_written
}

/// Returns the free bytes on the disk of a path; `None` if the system does not report them.
pub(crate) fn disk_free_bytes(path: &std::path::Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(path).ok()?;
    disk.f_bavail.checked_mul(disk.f_frsize)
}

/// Resource usage of the process, read from `/proc` where it exists.
#[derive(Debug)]
struct Process;

/// The size of a memory page on common machines; an estimate is sufficient.
const PAGE_BYTES: u64 = 4_096;

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let statm = fs::read_to_string("/proc/self/statm").ok();
        let pages = statm.and_then(|statm| statm.split_whitespace().nth(1)?.parse::<u64>().ok());
        let files = fs::read_dir("/proc/self/fd").ok().map(|entries| entries.count() as u64);
        encode_gauges(
            &mut encoder,
            &[
                ("process_resident_bytes", "Resident memory, in bytes", pages.map(|pages| pages * PAGE_BYTES)),
                ("process_open_files", "Open file descriptors", files),
            ],
        )
    }
}

#[cfg(test)]
#[path = "../../tests/harness/promql.rs"]
mod promql;

#[cfg(test)]
mod tests {
    use super::*;
    use promql::{Page, fires};

    /// Collects fixed figures of a store.
    #[derive(Debug)]
    struct FixedFigures(storage::Figures);

    impl Collector for FixedFigures {
        fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
            encode_figures(&mut encoder, Some(&self.0))
        }
    }

    fn scrape(figures: storage::Figures) -> Page {
        let mut metrics = Metrics::default();
        metrics.0.register_collector(Box::new(FixedFigures(figures)));
        let mut text = String::new();
        text::encode(&mut text, &metrics.0).expect("written to a string");
        Page::of(Some(&text))
    }

    #[test]
    fn queue_lengths_above_their_limits_raise_alarms() {
        let at_limit = storage::Figures { outbox: 10_000, queue: 2_000, ..storage::Figures::default() };
        let above = storage::Figures { outbox: 10_001, queue: 2_001, ..storage::Figures::default() };
        let (at_limit, above) = (scrape(at_limit), scrape(above));
        assert!(!fires("HivetillOutboxGrows", &at_limit, &at_limit, 60.0));
        assert!(fires("HivetillOutboxGrows", &at_limit, &above, 60.0));
        assert!(!fires("HivetillQueueFills", &at_limit, &at_limit, 60.0));
        assert!(fires("HivetillQueueFills", &at_limit, &above, 60.0));
    }
}
