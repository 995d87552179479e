//! The queue in front of the writer: group commit, a fast path for an uncontended commit, and a regular close.
//!
//! The writer's thread takes all waiting batches, commits them in one group and acknowledges each. It does not wait for
//! more batches: while a group is synced, the next one accumulates. An uncontended commit runs on the caller's thread,
//! because two context switches would cost more than the sync.
//!
//! The synchronization primitives come from the parent module: `interleavings` compiles this file with those of loom.

use std::collections::VecDeque;

use tokio::sync::oneshot;

use super::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, thread};

/// Maximum number of batches in one commit. It bounds how long the first batch waits for the last.
const MAX_GROUP: usize = 1_000;

/// The single writer behind a queue.
pub(super) trait Write: Send + 'static {
    /// A batch, submitted by a caller.
    type Batch: Send + 'static;
    /// The outcome of a batch, returned to its caller.
    type Outcome: Send + 'static;

    /// Commits a group of batches, each as a whole or not at all; returns the outcomes in the same order.
    fn commit(&mut self, group: Vec<Self::Batch>) -> Vec<Self::Outcome>;

    /// Commits one batch on the caller's thread, or returns it for the writer's thread.
    fn commit_here(&mut self, batch: Self::Batch) -> Result<Self::Outcome, Self::Batch>;

    /// Starts or completes the work that is due between commits.
    fn tend(&mut self);

    /// Completes all work before the store is closed.
    fn finish(self);
}

/// Why a batch has no outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// The queue is full: nothing was written.
    Full,
    /// The queue is closed: nothing was written.
    Closed,
    /// The writer's thread died while it committed the batch: the outcome is unknown.
    Lost,
}

/// The batches that wait for the writer's thread.
pub(super) struct Inbox<W: Write> {
    state: Mutex<State<W>>,
    changed: Condvar,
}

type Waiting<W> = (<W as Write>::Batch, oneshot::Sender<<W as Write>::Outcome>);

struct State<W: Write> {
    batches: VecDeque<Waiting<W>>,
    /// Number of batches that the thread has taken and not acknowledged yet.
    committing: usize,
    /// Whether the thread must call the writer's `tend` even without a batch.
    is_woken: bool,
    /// Whether new batches are rejected.
    is_closing: bool,
    /// Whether the thread has ended.
    is_closed: bool,
    closers: Vec<oneshot::Sender<()>>,
}

impl<W: Write> Inbox<W> {
    pub(super) fn new() -> Arc<Self> {
        let state = State {
            batches: VecDeque::new(),
            committing: 0,
            is_woken: false,
            is_closing: false,
            is_closed: false,
            closers: Vec::new(),
        };
        Arc::new(Self { state: Mutex::new(state), changed: Condvar::new() })
    }

    /// Wakes the writer's thread to call the writer's `tend`.
    pub(super) fn wake(&self) {
        lock(&self.state).is_woken = true;
        self.changed.notify_one();
    }

    /// Waits for work; returns false once the queue is closed and empty.
    fn wait(&self) -> bool {
        let mut state = lock(&self.state);
        loop {
            if !state.batches.is_empty() || state.is_woken {
                return true;
            }
            if state.is_closing {
                return false;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn take(&self) -> Vec<Waiting<W>> {
        let mut state = lock(&self.state);
        state.is_woken = false;
        let count = state.batches.len().min(MAX_GROUP);
        state.committing = count;
        state.batches.drain(..count).collect()
    }

    /// Closes the queue. Waiting batches are dropped, so that their callers get an error.
    fn end(&self) {
        let mut state = lock(&self.state);
        (state.is_closing, state.is_closed, state.committing) = (true, true, 0);
        state.batches.clear();
        state.closers.clear();
    }
}

/// A writer and the queue in front of it.
pub(super) struct Queue<W: Write> {
    inbox: Arc<Inbox<W>>,
    /// `None` once it is finished.
    writer: Arc<Mutex<Option<W>>>,
    /// Maximum number of waiting batches.
    capacity: usize,
    thread: Mutex<Option<thread::JoinHandle<()>>>,
}

impl<W: Write> Queue<W> {
    /// Starts the writer's thread.
    ///
    /// # Errors
    /// The operating system's, if no thread can be created.
    pub(super) fn start(inbox: Arc<Inbox<W>>, writer: W, capacity: usize) -> std::io::Result<Self> {
        let writer = Arc::new(Mutex::new(Some(writer)));
        let (its_inbox, its_writer) = (Arc::clone(&inbox), Arc::clone(&writer));
        let work = move || run(&its_inbox, &its_writer);
        let thread = thread::Builder::new().name("committer".to_owned()).spawn(work)?;
        Ok(Self { inbox, writer, capacity: capacity.max(1), thread: Mutex::new(Some(thread)) })
    }

    /// Commits a batch, on this thread if `may_run_here` and no other batch waits.
    pub(super) async fn commit(&self, batch: W::Batch, may_run_here: bool) -> Result<W::Outcome, Refused> {
        let batch = match self.commit_here(batch, may_run_here) {
            Ok(outcome) => return Ok(outcome),
            Err(batch) => batch,
        };
        self.submit(batch)?.await.map_err(|_| Refused::Lost)
    }

    fn commit_here(&self, batch: W::Batch, may_run_here: bool) -> Result<W::Outcome, W::Batch> {
        if !may_run_here {
            return Err(batch);
        }
        let is_contended = {
            let state = lock(&self.inbox.state);
            // Batches submitted earlier must be committed first.
            state.is_closing || !state.batches.is_empty() || state.committing > 0
        };
        if is_contended {
            return Err(batch);
        }
        let Ok(mut writer) = self.writer.try_lock() else { return Err(batch) };
        match writer.as_mut() {
            Some(writer) => writer.commit_here(batch),
            None => Err(batch),
        }
    }

    fn submit(&self, batch: W::Batch) -> Result<oneshot::Receiver<W::Outcome>, Refused> {
        let (sender, outcome) = oneshot::channel();
        let mut state = lock(&self.inbox.state);
        if state.is_closing {
            return Err(Refused::Closed);
        }
        if state.batches.len() >= self.capacity {
            return Err(Refused::Full);
        }
        state.batches.push_back((batch, sender));
        drop(state);
        self.inbox.changed.notify_one();
        Ok(outcome)
    }

    /// Commits the waiting batches, then finishes the writer. Later batches are rejected.
    pub(super) async fn close(&self) {
        let closed = {
            let mut state = lock(&self.inbox.state);
            state.is_closing = true;
            (!state.is_closed).then(|| {
                let (sender, closed) = oneshot::channel();
                state.closers.push(sender);
                closed
            })
        };
        self.inbox.changed.notify_one();
        if let Some(closed) = closed {
            // The sender never sends: the thread drops it when it ends.
            let _ = closed.await;
        }
        self.join();
    }

    /// Returns the number of batches that wait for the writer's thread.
    pub(super) fn waiting(&self) -> usize {
        lock(&self.inbox.state).batches.len()
    }

    fn join(&self) {
        if let Some(thread) = lock(&self.thread).take()
            && thread.join().is_err()
        {
            tracing::error!("committer panicked: the outcome of its last writes is unknown");
        }
    }
}

/// Waits for the writer's thread, so that the store can be opened again after the drop.
impl<W: Write> Drop for Queue<W> {
    fn drop(&mut self) {
        lock(&self.inbox.state).is_closing = true;
        self.inbox.changed.notify_one();
        self.join();
        // The writer is still there if the thread panicked.
        let writer = lock(&self.writer).take();
        if let Some(writer) = writer {
            writer.finish();
        }
    }
}

/// Commits waiting batches, group after group, until the queue is closed.
fn run<W: Write>(inbox: &Arc<Inbox<W>>, writer: &Mutex<Option<W>>) {
    let _end = End(Arc::clone(inbox));
    while inbox.wait() {
        // On a shared core, other threads get to submit their batches first, so that one sync commits all of them.
        // Without other threads, yielding costs nothing.
        thread::yield_now();
        let mut writer = lock(writer);
        let writer = writer.as_mut().expect("only this thread finishes it");
        let (batches, senders): (Vec<_>, Vec<_>) = inbox.take().into_iter().unzip();
        let outcomes = if batches.is_empty() { Vec::new() } else { writer.commit(batches) };
        for (sender, outcome) in senders.into_iter().zip(outcomes) {
            // The caller may have been cancelled.
            let _ = sender.send(outcome);
        }
        lock(&inbox.state).committing = 0;
        writer.tend();
    }
    let writer = lock(writer).take();
    if let Some(writer) = writer {
        writer.finish();
    }
}

/// Closes the queue when the thread ends, also by a panic.
struct End<W: Write>(Arc<Inbox<W>>);

impl<W: Write> Drop for End<W> {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl<W: Write> std::fmt::Debug for Inbox<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inbox").finish_non_exhaustive()
    }
}

impl<W: Write> std::fmt::Debug for Queue<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue").finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
