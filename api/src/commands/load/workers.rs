//! Who asks, and what is counted.

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
    Args, Failure, Workload,
    local::Usage,
    prepare::{Prepared, creation},
    wire::{Answer, Ask, Connection, Lost},
};

/// How long an answer is waited for; longer is an error.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a connection that failed is left alone.
const AFTER_LOSS: Duration = Duration::from_millis(50);
/// Pages that `list` looks at.
const PAGES: u64 = 5;
/// Where a gateway says which limits hold.
const LIMITS: HeaderName = HeaderName::from_static("ratelimit-policy");

/// Everything that was counted.
#[derive(Debug)]
pub(super) struct Tally {
    /// Waits in microseconds.
    pub(super) waits: Histogram<u64>,
    /// Answers by status.
    pub(super) statuses: BTreeMap<u16, u64>,
    /// Requests without an answer, by what went wrong.
    pub(super) lost: BTreeMap<String, u64>,
    /// What the gateway says of its limits.
    pub(super) limits: Option<String>,
    /// How long it was counted.
    pub(super) measured: Duration,
    /// What the gateway's process used meanwhile.
    pub(super) usage: Option<Usage>,
}

impl Tally {
    fn empty() -> Result<Self, Failure> {
        let waits = Histogram::new_with_bounds(1, 3_600_000_000, 3);
        let waits = waits.map_err(|error| Failure::Other(error.to_string()))?;
        let (statuses, lost) = (BTreeMap::new(), BTreeMap::new());
        Ok(Self { waits, statuses, lost, limits: None, measured: Duration::ZERO, usage: None })
    }

    fn answered(&mut self, answer: &Answer, wait: Duration) {
        // Longer than the histogram's hour is impossible: patience ends before.
        let _ = self.waits.record(u64::try_from(wait.as_micros()).unwrap_or(u64::MAX).max(1));
        *self.statuses.entry(answer.status.as_u16()).or_default() += 1;
        if self.limits.is_none() {
            self.limits = answer.headers.get(LIMITS).and_then(|text| Some(text.to_str().ok()?.to_owned()));
        }
    }

    fn add(&mut self, other: Self) {
        // Both have the same bounds.
        let _ = self.waits.add(&other.waits);
        for (status, count) in other.statuses {
            *self.statuses.entry(status).or_default() += count;
        }
        for (why, count) in other.lost {
            *self.lost.entry(why).or_default() += count;
        }
        self.limits = self.limits.take().or(other.limits);
    }
}

/// The workers of one run.
pub(super) struct Crew {
    shared: Arc<Shared>,
    tasks: JoinSet<Result<Tally, Failure>>,
}

struct Shared {
    workload: Workload,
    prepared: Prepared,
    next: AtomicUsize,
    counts: AtomicBool,
    ends: AtomicBool,
    answers: AtomicU64,
    busy: AtomicU32,
}

/// Starts a worker for each connection.
pub(super) fn start(args: &Args, target: SocketAddr, prepared: Prepared) -> Crew {
    let shared = Arc::new(Shared {
        workload: args.workload,
        prepared,
        next: AtomicUsize::new(0),
        counts: AtomicBool::new(false),
        ends: AtomicBool::new(false),
        answers: AtomicU64::new(0),
        busy: AtomicU32::new(args.connections),
    });
    let mut tasks = JoinSet::new();
    let begin = Instant::now();
    for number in 0..args.connections {
        let worker = Worker {
            shared: Arc::clone(&shared),
            target,
            api_key: args.api_key.clone(),
            // Each takes its turns of the common rate, one after the other.
            pace: args.rate.map(|rate| Pace {
                next: begin + Duration::from_secs(1) * number / rate.get(),
                every: Duration::from_secs(1) * args.connections / rate.get(),
            }),
        };
        tasks.spawn(worker.run());
    }
    Crew { shared, tasks }
}

impl Crew {
    /// Waits, but no longer than there is somebody at work.
    pub(super) async fn wait(&self, time: Duration) {
        let deadline = Instant::now() + time;
        while Instant::now() < deadline && !self.is_done() {
            sleep_until(deadline.min(Instant::now() + Duration::from_millis(50))).await;
        }
    }

    pub(super) fn count_from_now(&self) {
        self.shared.counts.store(true, Ordering::Relaxed);
    }

    /// Says whether everything there was to ask has been asked.
    pub(super) fn is_done(&self) -> bool {
        self.shared.busy.load(Ordering::Relaxed) == 0
    }

    /// Returns how many answers were counted so far.
    pub(super) fn answers(&self) -> u64 {
        self.shared.answers.load(Ordering::Relaxed)
    }

    /// Ends the workers and adds up what they counted.
    pub(super) async fn finish(mut self, measured: Duration, usage: Option<Usage>) -> Result<Tally, Failure> {
        self.shared.ends.store(true, Ordering::Relaxed);
        let mut all = Tally::empty()?;
        while let Some(worker) = self.tasks.join_next().await {
            all.add(worker.map_err(|error| Failure::Other(error.to_string()))??);
        }
        Ok(Tally { measured, usage, ..all })
    }
}

struct Worker {
    shared: Arc<Shared>,
    target: SocketAddr,
    api_key: String,
    pace: Option<Pace>,
}

struct Pace {
    next: Instant,
    every: Duration,
}

impl Worker {
    async fn run(mut self) -> Result<Tally, Failure> {
        let mut tally = Tally::empty()?;
        let mut connection = None;
        while !self.shared.ends.load(Ordering::Relaxed) {
            let Some(ask) = self.shared.next() else { break };
            let due = self.due().await;
            let asked = timeout(PATIENCE, self.ask(&mut connection, ask)).await;
            if asked.is_err() {
                connection = None;
            }
            // What ends after the end was asked for is no answer of the measured time.
            if !self.shared.counts.load(Ordering::Relaxed) || self.shared.ends.load(Ordering::Relaxed) {
                continue;
            }
            let why = match asked {
                Ok(Ok(answer)) if self.shared.workload.needs_signatures() && denies(&answer) => {
                    "a signed payment was refused".to_owned()
                }
                Ok(Ok(answer)) => {
                    tally.answered(&answer, due.elapsed());
                    self.shared.answers.fetch_add(1, Ordering::Relaxed);
                    continue;
                }
                Ok(Err(lost)) => lost.to_string(),
                Err(_) => format!("no response within {} s", PATIENCE.as_secs()),
            };
            *tally.lost.entry(why).or_default() += 1;
            if connection.is_none() {
                sleep(AFTER_LOSS).await;
            }
        }
        self.shared.busy.fetch_sub(1, Ordering::Relaxed);
        Ok(tally)
    }

    /// Waits for this worker's turn; a wait counts from it, however late the worker is.
    async fn due(&mut self) -> Instant {
        let Some(pace) = &mut self.pace else { return Instant::now() };
        let due = pace.next;
        pace.next += pace.every;
        sleep_until(due).await;
        due
    }

    async fn ask(&self, connection: &mut Option<Connection>, ask: Ask) -> Result<Answer, Lost> {
        let open = match connection {
            Some(open) => open,
            None => connection.insert(Connection::open(self.target, &self.api_key).await?),
        };
        let answer = open.send(ask).await;
        if answer.is_err() {
            *connection = None;
        }
        answer
    }
}

impl Shared {
    /// Returns what to ask next; nothing when all that can be asked once has been.
    fn next(&self) -> Option<Ask> {
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        match self.workload {
            Workload::Create => Some(creation()),
            Workload::Status => Some(self.status(turn)),
            Workload::List => Some(list(turn)),
            Workload::Checkout => Some(self.checkout(turn)),
            Workload::X402Verify => {
                let signed = &self.prepared.signed;
                Some(Ask::post("/api/public/x402/verify", signed[turn % signed.len()].clone()))
            }
            Workload::X402Settle => Some(Ask::post("/api/public/x402/settle", self.prepared.signed.get(turn)?.clone())),
            Workload::Mixed => Some(match turn % 10 {
                0 => creation(),
                1 => list(turn),
                2 => self.checkout(turn),
                _ => self.status(turn),
            }),
        }
    }

    fn status(&self, turn: usize) -> Ask {
        let payment = &self.prepared.payments[scattered(turn, self.prepared.payments.len())];
        Ask::get(format!("/api/public/payments/{}/status", payment.id))
    }

    fn checkout(&self, turn: usize) -> Ask {
        let payment = &self.prepared.payments[scattered(turn, self.prepared.payments.len())];
        Ask { accept: "text/html", ..Ask::get(format!("/for/{}", payment.slug)) }
    }
}

/// Says whether an answer is a verdict against the payment: those come with status 200.
fn denies(answer: &Answer) -> bool {
    #[derive(Deserialize)]
    struct Verdict {
        #[serde(rename = "isValid")]
        is_valid: Option<bool>,
        success: Option<bool>,
    }
    // Answers of other kinds have neither member, and pages are no JSON.
    answer.body.first() == Some(&b'{')
        && serde_json::from_slice::<Verdict>(&answer.body)
            .is_ok_and(|verdict| verdict.is_valid == Some(false) || verdict.success == Some(false))
}

fn list(turn: usize) -> Ask {
    Ask::get(format!("/api/public/payments?limit=20&page={}", turn as u64 % PAGES + 1))
}

/// Returns places that jump about: neighbours in time are no neighbours in the store, and every run has the same order.
fn scattered(turn: usize, len: usize) -> usize {
    let mixed = (turn as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    usize::try_from(mixed).unwrap_or(0) % len
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_payment_is_read_in_time() {
        let mut seen = [false; 100];
        (0..2_000).for_each(|turn| seen[scattered(turn, 100)] = true);
        assert!(seen.iter().all(|seen| *seen));
        assert_ne!(scattered(1, 100) + 1, scattered(2, 100));
    }
}
