//! The workers of a load test, which send requests and record responses.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use hdrhistogram::Histogram;
use http::header::HeaderName;
use serde::Deserialize;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, sleep_until, timeout},
};

use super::{
    args::{Args, Workload},
    prepare::{Prepared, create_request},
    process::Usage,
    wire::{Connection, LoadRequest, LoadResponse, RequestError},
};
use crate::commands::failure::Failure;

/// Timeout of a request.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
/// Delay before a worker reconnects after a failure.
const RECONNECT_DELAY: Duration = Duration::from_millis(50);
/// Number of pages that the workload `list` reads.
const PAGES: u64 = 5;
/// The header with the gateway's rate limits.
const LIMITS: HeaderName = HeaderName::from_static("ratelimit-policy");

/// The recorded responses of a run.
#[derive(Debug)]
pub(super) struct Measurement {
    /// Latencies in microseconds.
    pub(super) latencies: Histogram<u64>,
    /// Number of responses by status.
    pub(super) statuses: BTreeMap<u16, u64>,
    /// Number of requests without a response, by error.
    pub(super) failures: BTreeMap<String, u64>,
    /// The rate limits reported by the gateway.
    pub(super) limits: Option<String>,
    /// The duration of the measurement.
    pub(super) measured: Duration,
    /// The resource usage of the gateway's process during the measurement.
    pub(super) usage: Option<Usage>,
}

impl Measurement {
    fn empty() -> Result<Self, Failure> {
        let latencies = Histogram::new_with_bounds(1, 3_600_000_000, 3);
        let latencies = latencies.map_err(|error| Failure::Other(error.to_string()))?;
        let (statuses, failures) = (BTreeMap::new(), BTreeMap::new());
        Ok(Self { latencies, statuses, failures, limits: None, measured: Duration::ZERO, usage: None })
    }

    fn record(&mut self, response: &LoadResponse, wait: Duration) {
        // Never fails: the request timeout is below the histogram's maximum of an hour.
        let _ = self.latencies.record(u64::try_from(wait.as_micros()).unwrap_or(u64::MAX).max(1));
        *self.statuses.entry(response.status.as_u16()).or_default() += 1;
        if self.limits.is_none() {
            self.limits = response.headers.get(LIMITS).and_then(|text| Some(text.to_str().ok()?.to_owned()));
        }
    }

    fn add(&mut self, other: Self) {
        // Never fails: both have the same bounds.
        let _ = self.latencies.add(&other.latencies);
        for (status, count) in other.statuses {
            *self.statuses.entry(status).or_default() += count;
        }
        for (error, count) in other.failures {
            *self.failures.entry(error).or_default() += count;
        }
        self.limits = self.limits.take().or(other.limits);
    }
}

/// The workers of one run.
pub(super) struct Workers {
    shared: Arc<Shared>,
    tasks: JoinSet<Result<Measurement, Failure>>,
}

struct Shared {
    workload: Workload,
    prepared: Prepared,
    next: AtomicUsize,
    is_measuring: AtomicBool,
    is_stopping: AtomicBool,
    responses: AtomicU64,
    running: AtomicU32,
}

/// Starts a worker for each connection.
pub(super) fn start(args: &Args, target: SocketAddr, prepared: Prepared) -> Workers {
    let shared = Arc::new(Shared {
        workload: args.workload,
        prepared,
        next: AtomicUsize::new(0),
        is_measuring: AtomicBool::new(false),
        is_stopping: AtomicBool::new(false),
        responses: AtomicU64::new(0),
        running: AtomicU32::new(args.connections),
    });
    let mut tasks = JoinSet::new();
    let begin = Instant::now();
    for number in 0..args.connections {
        let worker = Worker {
            shared: Arc::clone(&shared),
            target,
            api_key: args.sent_api_key().to_owned(),
            // The workers share the rate: their requests are due one after the other.
            schedule: args.rate.map(|rate| Schedule {
                next: begin + Duration::from_secs(1) * number / rate.get(),
                every: Duration::from_secs(1) * args.connections / rate.get(),
            }),
        };
        tasks.spawn(worker.run());
    }
    Workers { shared, tasks }
}

impl Workers {
    /// Waits for a time, or until all workers are done.
    pub(super) async fn wait(&self, time: Duration) {
        let deadline = Instant::now() + time;
        while Instant::now() < deadline && !self.is_done() {
            sleep_until(deadline.min(Instant::now() + Duration::from_millis(50))).await;
        }
    }

    pub(super) fn start_measurement(&self) {
        self.shared.is_measuring.store(true, Ordering::Relaxed);
    }

    /// Returns whether all workers are done.
    pub(super) fn is_done(&self) -> bool {
        self.shared.running.load(Ordering::Relaxed) == 0
    }

    /// Returns the number of recorded responses.
    pub(super) fn responses(&self) -> u64 {
        self.shared.responses.load(Ordering::Relaxed)
    }

    /// Stops the workers and merges their measurements.
    pub(super) async fn finish(mut self, measured: Duration, usage: Option<Usage>) -> Result<Measurement, Failure> {
        self.shared.is_stopping.store(true, Ordering::Relaxed);
        let mut all = Measurement::empty()?;
        while let Some(worker) = self.tasks.join_next().await {
            all.add(worker.map_err(|error| Failure::Other(error.to_string()))??);
        }
        Ok(Measurement { measured, usage, ..all })
    }
}

struct Worker {
    shared: Arc<Shared>,
    target: SocketAddr,
    api_key: String,
    schedule: Option<Schedule>,
}

struct Schedule {
    next: Instant,
    every: Duration,
}

impl Worker {
    async fn run(mut self) -> Result<Measurement, Failure> {
        let mut measurement = Measurement::empty()?;
        let mut connection = None;
        while !self.shared.is_stopping.load(Ordering::Relaxed) {
            let Some(request) = self.shared.next() else { break };
            let due = self.due().await;
            let result = timeout(RESPONSE_TIMEOUT, self.send(&mut connection, request)).await;
            if result.is_err() {
                connection = None;
            }
            // Responses before the start and after the end of the measurement do not count.
            if !self.shared.is_measuring.load(Ordering::Relaxed) || self.shared.is_stopping.load(Ordering::Relaxed) {
                continue;
            }
            let error = match result {
                Ok(Ok(response)) if self.shared.workload.needs_signatures() && is_refusal(&response) => {
                    "a signed payment was refused".to_owned()
                }
                Ok(Ok(response)) => {
                    measurement.record(&response, due.elapsed());
                    self.shared.responses.fetch_add(1, Ordering::Relaxed);
                    continue;
                }
                Ok(Err(error)) => error.to_string(),
                Err(_) => format!("no response within {} s", RESPONSE_TIMEOUT.as_secs()),
            };
            *measurement.failures.entry(error).or_default() += 1;
            if connection.is_none() {
                sleep(RECONNECT_DELAY).await;
            }
        }
        self.shared.running.fetch_sub(1, Ordering::Relaxed);
        Ok(measurement)
    }

    /// Waits until the worker's next request is due. Returns the due time, from which the latency counts.
    async fn due(&mut self) -> Instant {
        let Some(schedule) = &mut self.schedule else { return Instant::now() };
        let due = schedule.next;
        schedule.next += schedule.every;
        sleep_until(due).await;
        due
    }

    /// Sends a request, over a new connection if there is none.
    async fn send(
        &self,
        connection: &mut Option<Connection>,
        request: LoadRequest,
    ) -> Result<LoadResponse, RequestError> {
        let open = match connection {
            Some(open) => open,
            None => connection.insert(Connection::open(self.target, &self.api_key).await?),
        };
        let response = open.send(request).await;
        if !response.as_ref().is_ok_and(|response| !response.closes) {
            *connection = None;
        }
        response
    }
}

impl Shared {
    /// Returns the next request; `None` when every signed payment was used.
    fn next(&self) -> Option<LoadRequest> {
        let sequence = self.next.fetch_add(1, Ordering::Relaxed);
        match self.workload {
            Workload::Create => Some(create_request()),
            Workload::Status => Some(self.status(sequence)),
            Workload::List => Some(list(sequence)),
            Workload::Checkout => Some(self.checkout(sequence)),
            Workload::X402Verify => {
                let signed = &self.prepared.signed;
                Some(LoadRequest::post("/api/public/x402/verify", signed[sequence % signed.len()].clone()))
            }
            Workload::X402Settle => {
                Some(LoadRequest::post("/api/public/x402/settle", self.prepared.signed.get(sequence)?.clone()))
            }
            Workload::Gate => {
                let payment = Some(self.prepared.headers.get(sequence)?.clone());
                Some(LoadRequest { payment, ..LoadRequest::get(self.prepared.path.clone()) })
            }
            Workload::Upstream => Some(LoadRequest::get(self.prepared.path.clone())),
            Workload::Mixed => Some(match sequence % 10 {
                0 => create_request(),
                1 => list(sequence),
                2 => self.checkout(sequence),
                _ => self.status(sequence),
            }),
        }
    }

    fn status(&self, sequence: usize) -> LoadRequest {
        let payment = &self.prepared.payments[pseudo_random_index(sequence, self.prepared.payments.len())];
        LoadRequest::get(format!("/api/public/payments/{}/status", payment.id))
    }

    fn checkout(&self, sequence: usize) -> LoadRequest {
        let payment = &self.prepared.payments[pseudo_random_index(sequence, self.prepared.payments.len())];
        LoadRequest { accept: "text/html", ..LoadRequest::get(format!("/for/{}", payment.slug)) }
    }
}

/// Returns whether a response refuses a payment; such responses have status 200.
fn is_refusal(response: &LoadResponse) -> bool {
    #[derive(Deserialize)]
    struct Verdict {
        #[serde(rename = "isValid")]
        is_valid: Option<bool>,
        success: Option<bool>,
    }
    // Other responses have neither member, and pages are not JSON.
    response.body.first() == Some(&b'{')
        && serde_json::from_slice::<Verdict>(&response.body)
            .is_ok_and(|verdict| verdict.is_valid == Some(false) || verdict.success == Some(false))
}

fn list(sequence: usize) -> LoadRequest {
    LoadRequest::get(format!("/api/public/payments?limit=20&page={}", sequence as u64 % PAGES + 1))
}

/// Returns an index below `len`. Consecutive requests get distant indices, so that they do not read neighbouring rows of
/// the store; every run has the same order.
fn pseudo_random_index(sequence: usize, len: usize) -> usize {
    let mixed = (sequence as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    usize::try_from(mixed).unwrap_or(0) % len
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_index_occurs() {
        let mut read = [false; 100];
        (0..2_000).for_each(|sequence| read[pseudo_random_index(sequence, 100)] = true);
        assert!(read.iter().all(|read| *read));
        assert_ne!(pseudo_random_index(1, 100) + 1, pseudo_random_index(2, 100));
    }
}
