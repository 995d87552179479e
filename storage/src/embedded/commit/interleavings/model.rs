//! Every interleaving of two callers, a checkpoint and a close, with a model of the writer.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use loom::{future::block_on, thread};

use super::{
    checkpoints::{Checkpoints, Job, Segments},
    queue::{Inbox, Queue, Refused, Write},
};

/// The state that survives a power loss (the two WAL segments and the database), and the batches acknowledged to
/// callers.
#[derive(Debug, Default)]
struct Disk {
    segments: [Vec<u32>; 2],
    database: BTreeSet<u32>,
    acknowledged: BTreeSet<u32>,
}

type Shared = Arc<Mutex<Disk>>;

fn locked(disk: &Shared) -> std::sync::MutexGuard<'_, Disk> {
    disk.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Disk {
    /// Asserts that a restart at this moment finds every acknowledged batch.
    fn check(&self) {
        let segments = self.segments.iter().flatten().copied();
        let found: BTreeSet<u32> = segments.chain(self.database.iter().copied()).collect();
        assert!(found.is_superset(&self.acknowledged), "thread_died: {self:?}");
    }
}

/// Writes the rows of one segment to the database.
#[derive(Clone)]
struct Checkpoint {
    disk: Shared,
    rows: Vec<u32>,
}

impl Job for Checkpoint {
    type Error = ();

    fn run(&self) -> Result<(), ()> {
        let mut disk = locked(&self.disk);
        disk.database.extend(&self.rows);
        disk.check();
        Ok(())
    }

    fn thread_died() {}
}

/// The two segments and the database.
struct Rows {
    disk: Shared,
    current: usize,
    /// Whether a segment was sealed: loom has threads for one checkpoint.
    has_sealed: bool,
}

impl Segments for Rows {
    type Checkpoint = Checkpoint;

    fn is_filled(&self, quarters: u64) -> bool {
        // A second batch waits for the checkpoint.
        let rows = locked(&self.disk).segments[self.current].len() as u64;
        if self.has_sealed { quarters > 4 && rows > 0 } else { rows > 0 }
    }

    fn seal(&mut self) -> Checkpoint {
        let mut disk = locked(&self.disk);
        let rows = disk.segments[self.current].clone();
        (self.current, self.has_sealed) = (1 - self.current, true);
        // The segment is overwritten from its start: its rows must be in the database.
        disk.segments[self.current].clear();
        disk.check();
        Checkpoint { disk: Arc::clone(&self.disk), rows }
    }

    fn install(&mut self) -> Result<(), ()> {
        let disk = locked(&self.disk);
        let sealed = &disk.segments[1 - self.current];
        assert!(sealed.iter().all(|row| disk.database.contains(row)), "installed before it is written: {disk:?}");
        Ok(())
    }

    fn blocked(&self) {}
}

struct Model {
    rows: Rows,
    checkpoints: Checkpoints<Checkpoint>,
    inbox: Arc<Inbox<Model>>,
    finished: Arc<AtomicUsize>,
}

impl Write for Model {
    type Batch = u32;
    type Outcome = u32;

    fn commit(&mut self, group: Vec<u32>) -> Vec<u32> {
        locked(&self.rows.disk).segments[self.rows.current].extend(&group);
        group
    }

    fn commit_here(&mut self, batch: u32) -> Result<u32, u32> {
        if self.checkpoints.is_due(&self.rows) {
            return Err(batch);
        }
        self.commit(vec![batch]);
        Ok(batch)
    }

    fn tend(&mut self) {
        let inbox = Arc::clone(&self.inbox);
        self.checkpoints.tend(&mut self.rows, Some(move || inbox.wake())).expect("a model's disk");
    }

    fn finish(mut self) {
        self.checkpoints.finish(&mut self.rows, |_| true).expect("a model's disk");
        self.finished.fetch_add(1, Ordering::SeqCst);
    }
}

/// Runs two callers that commit a batch each, with a checkpoint after the first, while the store is being closed or
/// before.
fn callers_and_a_close(may_run_here: bool, is_closed_meanwhile: bool) {
    let (disk, finished) = (Shared::default(), Arc::new(AtomicUsize::new(0)));
    let inbox = Inbox::new();
    let model = Model {
        rows: Rows { disk: Arc::clone(&disk), current: 0, has_sealed: false },
        checkpoints: Checkpoints::none(),
        inbox: Arc::clone(&inbox),
        finished: Arc::clone(&finished),
    };
    let queue = Arc::new(Queue::start(inbox, model, 8).expect("a thread"));
    let callers = [0, 1].map(|caller| {
        let (queue, disk) = (Arc::clone(&queue), Arc::clone(&disk));
        thread::spawn(move || match block_on(queue.commit(caller, may_run_here)) {
            Ok(outcome) => {
                assert_eq!(outcome, caller, "the outcome of another batch");
                let mut disk = locked(&disk);
                disk.acknowledged.insert(caller);
                disk.check();
            }
            Err(refused) => assert_eq!(refused, Refused::Closed),
        })
    });
    let join =
        |callers: [thread::JoinHandle<()>; 2]| callers.into_iter().for_each(|caller| caller.join().expect("a caller"));
    let callers = if is_closed_meanwhile {
        Some(callers)
    } else {
        join(callers);
        assert_eq!(locked(&disk).acknowledged.len(), 2, "rejected without a close");
        None
    };
    block_on(queue.close());
    assert_eq!(finished.load(Ordering::SeqCst), 1, "closed before all rows are written");
    callers.map(join);
    assert_eq!(block_on(queue.commit(99, may_run_here)), Err(Refused::Closed));
    let disk = locked(&disk);
    assert!(disk.database.is_superset(&disk.acknowledged), "a close moves all rows into the database");
}

/// Runs every interleaving with at most this many preemptions (`HIVETILL_PREEMPTIONS` adds to it); returns the number
/// of interleavings.
#[expect(clippy::disallowed_methods, clippy::print_stdout, reason = "a test's own option, and its result")]
fn every_interleaving(preemptions: usize, may_run_here: bool, is_closed_meanwhile: bool) -> usize {
    let more = std::env::var("HIVETILL_PREEMPTIONS").map_or(0, |more| more.parse().expect("a count"));
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions + more);
    builder.check(move || {
        counted.fetch_add(1, Ordering::SeqCst);
        callers_and_a_close(may_run_here, is_closed_meanwhile);
    });
    let runs = runs.load(Ordering::SeqCst);
    println!("{runs} interleavings with at most {} preemptions", preemptions + more);
    runs
}

#[test]
fn commits_on_caller_threads_survive_a_checkpoint_and_a_close() {
    assert!(every_interleaving(2, true, true) > 1_000);
}

#[test]
fn queued_commits_survive_a_checkpoint_and_a_close() {
    assert!(every_interleaving(1, false, true) > 100);
}

#[test]
fn queued_commits_and_a_checkpoint_do_not_deadlock() {
    assert!(every_interleaving(1, false, false) > 50);
}
