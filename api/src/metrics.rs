//! Metrics for Prometheus: one registry a process, shown at an address of its own, `GET /metrics`.

use std::{fmt, fs, io::Write as _, path::PathBuf, sync::Arc};

use actors::Gateway;
use http::{HeaderValue, Method, StatusCode, header::CONTENT_TYPE};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric, text},
    metrics::{MetricType, gauge::ConstGauge, info::Info},
    registry::Registry,
};
use storage::RedbStore;
use tokio::{net::TcpListener, task::JoinHandle};
use warp::{Filter, path::FullPath, reply::Response};

use crate::facade::Facade;

/// What every name starts with.
const PREFIX: &str = "hivetill";
/// The format that Prometheus asks for first.
const OPEN_METRICS: HeaderValue =
    HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");

/// What a process shows of itself.
#[derive(Debug)]
pub struct Metrics(Registry);

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix(PREFIX);
        let version = [("version", env!("CARGO_PKG_VERSION"))];
        registry.register("build", "Which program this is", Info::new(version));
        registry.register_collector(Box::new(Process));
        Self(registry)
    }
}

impl Metrics {
    /// Adds an engine and its store, whose file is in `data`.
    pub fn add_engine(&mut self, gateway: &Gateway, store: &Arc<RedbStore>, data: PathBuf) {
        gateway.register_metrics(&mut self.0);
        store.commit_metrics().register(&mut self.0);
        self.0.register_collector(Box::new(StoreCollector { store: Arc::clone(store), data }));
    }

    /// Adds the gRPC ports.
    pub fn add_grpc(&mut self, grpc: &crate::service::Metrics) {
        grpc.register(&mut self.0);
    }

    /// Adds a facade.
    pub fn add_facade(&mut self, facade: &Facade) {
        facade.register_metrics(&mut self.0);
    }

    /// Serves them on `listener` until `stop` is done. A scrape that is under way then is cut off.
    pub fn serve(self, listener: TcpListener, stop: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        let registry = Arc::new(self.0);
        let show = warp::method().and(warp::path::full()).then(move |method: Method, path: FullPath| {
            let registry = Arc::clone(&registry);
            async move {
                match (method, path.as_str()) {
                    (Method::GET | Method::HEAD, "/metrics") => page_beside(registry).await,
                    (_, "/metrics") => refusal(StatusCode::METHOD_NOT_ALLOWED),
                    _ => refusal(StatusCode::NOT_FOUND),
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

/// Writes the page in a thread of its own: rows are counted for it, for longer than one of the runtime can be spared.
#[expect(clippy::disallowed_methods, reason = "no simulation scrapes")]
async fn page_beside(registry: Arc<Registry>) -> Response {
    let page = tokio::task::spawn_blocking(move || page(&registry)).await;
    page.unwrap_or_else(|_| refusal(StatusCode::INTERNAL_SERVER_ERROR))
}

fn page(registry: &Registry) -> Response {
    let mut page = String::with_capacity(16 * 1024);
    // A text in memory takes whatever is written.
    let _ = text::encode(&mut page, registry);
    let mut response = Response::new(page.into());
    response.headers_mut().insert(CONTENT_TYPE, OPEN_METRICS);
    response
}

fn refusal(status: StatusCode) -> Response {
    let mut response = Response::new("GET /metrics is all there is here\n".into());
    *response.status_mut() = status;
    response
}

/// Shows whole numbers as they are now.
fn show(encoder: &mut DescriptorEncoder<'_>, figures: &[(&str, &str, Option<u64>)]) -> fmt::Result {
    for (name, help, value) in figures {
        if let Some(value) = value {
            let gauge = ConstGauge::new(i64::try_from(*value).unwrap_or(i64::MAX));
            gauge.encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)?;
        }
    }
    Ok(())
}

/// How much is stored, what waits, and the room on the disk.
struct StoreCollector {
    store: Arc<RedbStore>,
    data: PathBuf,
}

impl fmt::Debug for StoreCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreCollector").field("data", &self.data).finish_non_exhaustive()
    }
}

impl Collector for StoreCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        // A store that cannot be read shows nothing: its absence is the alarm, and `store_up` says so.
        let figures = self.store.figures().ok();
        let is_up = figures.is_some() && self.store.failure().is_none() && takes_writes(&self.data);
        let file_bytes = fs::metadata(self.data.join(storage::FILE_NAME)).ok().map(|file| file.len());
        let free_bytes = disk_free_bytes(&self.data);
        show(
            &mut encoder,
            &[
                ("store_up", "Whether the store can be read and written", Some(is_up.into())),
                ("store_file_bytes", "How long the database file is", file_bytes),
                ("disk_free_bytes", "Room on the disk of the data directory", free_bytes),
            ],
        )?;
        show_figures(&mut encoder, figures.as_ref())
    }
}

/// Shows what the store holds.
fn show_figures(encoder: &mut DescriptorEncoder<'_>, figures: Option<&storage::Figures>) -> fmt::Result {
    let of = |figure: fn(&storage::Figures) -> u64| figures.map(figure);
    show(
        encoder,
        &[
            ("payments", "Payments that are stored", of(|f| f.payments)),
            ("sessions_open", "Payments that are pending, awake or parked", of(|f| f.open_payments)),
            ("sessions_in_flight", "Payments of which the chain has something to decide", of(|f| f.in_flight)),
            ("merchants", "Merchants that are registered", of(|f| f.merchants)),
            ("events", "Events that are kept", of(|f| f.events)),
            ("outbox_depth", "Webhooks to deliver, retries too", of(|f| f.outbox)),
            ("unmatched_waiting", "Stray transfers that name an unknown session", of(|f| f.strays)),
            ("commit_queue_depth", "Commits that wait for the disk", of(|f| f.queue)),
        ],
    )
}

/// The file by whose writing it is found out whether the disk takes writes.
const PROBE: &str = "hivetill.probe";
/// A page of most disks.
const PROBE_BYTES: [u8; 4_096] = [0; 4_096];

/// Says whether the disk of the data takes writes now: nobody else finds out while nothing is committed, and the commit
/// that fails ends the engine.
fn takes_writes(data: &std::path::Path) -> bool {
    let path = data.join(PROBE);
    let probe = || -> std::io::Result<()> {
        let mut file = fs::File::create(&path)?;
        file.write_all(&PROBE_BYTES)?;
        file.sync_data()
    };
    let is_taken = probe().is_ok();
    // Left behind, the next look takes it.
    let _ = fs::remove_file(&path);
    is_taken
}

/// Returns how many bytes more fit on the disk of a path; none where the system does not say.
pub(crate) fn disk_free_bytes(path: &std::path::Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(path).ok()?;
    disk.f_bavail.checked_mul(disk.f_frsize)
}

/// What the process uses, read from `/proc` where there is one.
#[derive(Debug)]
struct Process;

/// The size of a page on the machines this runs on; memory is a hint, not a book.
const PAGE_BYTES: u64 = 4_096;

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let statm = fs::read_to_string("/proc/self/statm").ok();
        let pages = statm.and_then(|statm| statm.split_whitespace().nth(1)?.parse::<u64>().ok());
        let files = fs::read_dir("/proc/self/fd").ok().map(|entries| entries.count() as u64);
        show(
            &mut encoder,
            &[
                ("process_resident_bytes", "Memory that is resident", pages.map(|pages| pages * PAGE_BYTES)),
                ("process_open_files", "File descriptors that are open", files),
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

    /// Shows figures that were taken.
    #[derive(Debug)]
    struct Taken(storage::Figures);

    impl Collector for Taken {
        fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
            show_figures(&mut encoder, Some(&self.0))
        }
    }

    fn scrape(figures: storage::Figures) -> Page {
        let mut metrics = Metrics::default();
        metrics.0.register_collector(Box::new(Taken(figures)));
        let mut text = String::new();
        text::encode(&mut text, &metrics.0).expect("a text in memory");
        Page::of(Some(&text))
    }

    #[test]
    fn queues_that_grow_raise_their_alarms() {
        let (calm, full) = (storage::Figures { outbox: 10_000, queue: 2_000, ..storage::Figures::default() }, 1);
        let more = storage::Figures { outbox: 10_000 + full, queue: 2_000 + full, ..storage::Figures::default() };
        let (calm, more) = (scrape(calm), scrape(more));
        assert!(!fires("HivetillOutboxGrows", &calm, &calm, 60.0) && !fires("HivetillQueueFills", &calm, &calm, 60.0));
        assert!(fires("HivetillOutboxGrows", &calm, &more, 60.0));
        assert!(fires("HivetillQueueFills", &calm, &more, 60.0));
    }
}
