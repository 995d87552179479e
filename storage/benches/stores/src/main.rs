//! Compares Hivetill's store with the stores that it could use instead: throughput and latency of durable payment
//! creations by number of concurrent callers, and the time to open a store with a million payments after `kill -9`.
//!
//! `stores rates DIRECTORY [SECONDS]` and `stores restart DIRECTORY [PAYMENTS]`; the directory selects the disk. The
//! other stores write only the rows of a creation; Hivetill's store also encodes records and checks versions. All have
//! group commit. A single caller commits on its own thread.

mod candidates;
mod rows;

use std::{
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use candidates::{Candidate, Rows};
use rows::{Row, Template, create, payment};
use storage::{EmbeddedStore, Options, prelude::*};
use tokio::sync::{mpsc, oneshot};

const CALLERS: [usize; 3] = [1, 16, 64];
const GROUP_MAX: usize = 1_000;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_time().build().expect("a runtime");
    match words[..] {
        ["rates", directory] => runtime.block_on(rates(directory.as_ref(), Duration::from_secs(4))),
        ["rates", directory, seconds] => {
            let seconds = seconds.parse().expect("seconds");
            runtime.block_on(rates(directory.as_ref(), Duration::from_secs(seconds)));
        }
        ["restart", directory] => restart(directory.as_ref(), 1_000_000),
        ["restart", directory, payments] => restart(directory.as_ref(), payments.parse().expect("a count")),
        ["fill", name, directory, payments] => {
            runtime.block_on(fill(candidate(name), directory.as_ref(), payments.parse().expect("a count")));
        }
        _ => panic!("rates DIRECTORY [SECONDS] or restart DIRECTORY [PAYMENTS]"),
    }
}

fn candidate(name: &str) -> Candidate {
    Candidate::ALL.into_iter().find(|candidate| candidate.name() == name).expect("a known store")
}

/// An open store.
#[derive(Clone)]
enum Open {
    Ours(Arc<EmbeddedStore>),
    Alone(Arc<Mutex<Box<dyn Rows>>>, Arc<Template>),
    Queue(mpsc::UnboundedSender<(Vec<Row>, oneshot::Sender<()>)>, Arc<Template>),
}

impl Open {
    async fn new(candidate: Candidate, directory: &Path, callers: usize) -> Self {
        if candidate == Candidate::Log {
            return Self::Ours(Arc::new(EmbeddedStore::open(directory, Options::default()).expect("a store")));
        }
        let beside = tempfile::tempdir_in(directory).expect("a directory");
        let template = Arc::new(Template::of_a_creation(beside.path()).await);
        let store = candidate.open(directory, &template.tables);
        if callers == 1 {
            return Self::Alone(Arc::new(Mutex::new(store)), template);
        }
        let (sender, queue) = mpsc::unbounded_channel();
        std::thread::spawn(move || write_queue(store, queue));
        Self::Queue(sender, template)
    }

    async fn create(&self, number: u64) {
        match self {
            Self::Ours(store) => store.commit(create(payment(number))).await.expect("a creation"),
            Self::Alone(store, template) => store.lock().expect("the store").commit(&[template.rows_of(number)]),
            Self::Queue(queue, template) => {
                let (done, is_done) = oneshot::channel();
                queue.send((template.rows_of(number), done)).expect("a writer");
                is_done.await.expect("a commit");
            }
        }
    }

    async fn close(self) {
        if let Self::Ours(store) = self {
            store.close().await;
        }
    }
}

fn write_queue(mut store: Box<dyn Rows>, mut queue: mpsc::UnboundedReceiver<(Vec<Row>, oneshot::Sender<()>)>) {
    while let Some(first) = queue.blocking_recv() {
        std::thread::yield_now();
        let (mut group, mut answers) = (vec![first.0], vec![first.1]);
        while group.len() < GROUP_MAX
            && let Ok((rows, answer)) = queue.try_recv()
        {
            group.push(rows);
            answers.push(answer);
        }
        store.commit(&group);
        for answer in answers {
            let _ = answer.send(());
        }
    }
}

/// Runs concurrent callers that create payments until a time or a count is reached; returns the latencies.
async fn run(open: &Open, callers: usize, next: &Arc<AtomicU64>, until: Instant, count: u64) -> Vec<Duration> {
    let tasks = (0..callers).map(|_| {
        let (open, next) = (open.clone(), Arc::clone(next));
        tokio::spawn(async move {
            let mut waits = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count || Instant::now() >= until {
                    break waits;
                }
                let begun = Instant::now();
                open.create(number).await;
                waits.push(begun.elapsed());
            }
        })
    });
    let mut waits = Vec::new();
    for task in tasks.collect::<Vec<_>>() {
        waits.extend(task.await.expect("a caller"));
    }
    waits
}

async fn rates(parent: &Path, seconds: Duration) {
    let directory = tempfile::tempdir_in(parent).expect("a directory");
    println!("rows of a creation: {}", Template::of_a_creation(directory.path()).await.describe());
    println!(
        "{:>18} {:>8} {:>12} {:>9} {:>9} {:>12}",
        "store", "callers", "creations/s", "p50 us", "p99 us", "CPU us each"
    );
    for callers in CALLERS {
        for candidate in Candidate::ALL {
            let directory = tempfile::tempdir_in(parent).expect("a directory");
            let open = Open::new(candidate, directory.path(), callers).await;
            let (cpu, begun) = (cpu_time(), Instant::now());
            let mut waits = run(&open, callers, &Arc::default(), begun + seconds, u64::MAX).await;
            let (elapsed, cpu) = (begun.elapsed(), cpu_time() - cpu);
            open.close().await;
            waits.sort_unstable();
            let at = |percent: usize| waits[waits.len() * percent / 100].as_micros();
            let rate = waits.len() as f64 / elapsed.as_secs_f64();
            let each = cpu.as_micros() / waits.len() as u128;
            println!("{:>18} {callers:>8} {rate:>12.0} {:>9} {:>9} {each:>12}", candidate.name(), at(50), at(99));
        }
    }
}

/// Fills a store in another process, kills it during further creations, and measures the time to open the store.
fn restart(parent: &Path, payments: u64) {
    println!("{:>18} {:>12} {:>12}", "store", "open ms", "rows");
    for candidate in Candidate::ALL {
        let directory = tempfile::tempdir_in(parent).expect("a directory");
        let program = std::env::current_exe().expect("this program");
        let mut child = Command::new(program)
            .args(["fill", candidate.name()])
            .arg(directory.path())
            .arg(payments.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a child");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("its output")).read_line(&mut line).expect("a line");
        assert_eq!(line.trim(), "filled");
        std::thread::sleep(Duration::from_millis(1_500));
        child.kill().expect("a kill");
        child.wait().expect("its end");
        let begun = Instant::now();
        let (opened, rows) = reopen(candidate, directory.path(), begun);
        println!("{:>18} {:>12} {rows:>12}", candidate.name(), opened.as_millis());
    }
}

fn reopen(candidate: Candidate, directory: &Path, begun: Instant) -> (Duration, u64) {
    if candidate == Candidate::Log {
        let store = EmbeddedStore::open(directory, Options::default()).expect("a store");
        let opened = begun.elapsed();
        let mut rows = 0;
        store.each_row_inline(|_| rows += 1).expect("the rows");
        return (opened, rows);
    }
    let tables = std::fs::read_to_string(directory.join("tables")).expect("the tables");
    let begun = Instant::now();
    let store = candidate.open(directory, &tables.lines().map(str::to_owned).collect::<Vec<_>>());
    (begun.elapsed(), store.count())
}

async fn fill(candidate: Candidate, directory: &Path, payments: u64) {
    let open = Open::new(candidate, directory, 1_000).await;
    if let Open::Queue(_, template) = &open {
        std::fs::write(directory.join("tables"), template.tables.join("\n")).expect("the tables");
    }
    let far = Instant::now() + Duration::from_secs(86_400);
    let next = Arc::default();
    run(&open, 1_000, &next, far, payments).await;
    println!("filled");
    run(&open, 16, &next, far, u64::MAX).await;
}

fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let fields: Vec<&str> = stat.rsplit(')').next().expect("fields").split_whitespace().collect();
    // User and system time, in hundredths of a second, are the 12th and 13th after the name.
    let ticks = |at: usize| fields[at].parse::<u64>().expect("a number");
    Duration::from_millis((ticks(11) + ticks(12)) * 10)
}
