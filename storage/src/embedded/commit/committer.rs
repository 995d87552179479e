//! Group commit: one writer takes whatever waits, writes it as one commit, syncs the log once, and answers everybody.
//!
//! Who comes alone, to a quick disk and an idle writer, writes in its own thread: being woken by another one and waking it
//! cost more than the sync. In company the writer's own thread writes, and the runtime's go on serving.
//!
//! Nobody waits for company: while one group is written and synced the next gathers, so the commit itself is the batching
//! window. Waiting for more, even half a millisecond and only in a crowd, left both cores of a small machine idle.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use redb::Database;
use tokio::{
    runtime::Handle,
    sync::{mpsc, oneshot},
    time::Instant,
};

use crate::{
    batch::CommitError,
    embedded::{
        commit::{apply::Group, prepared::Prepared, transaction::Draft},
        damage::Damages,
        fault::Fault,
        health::{Health, Watch},
        metrics::CommitMetrics,
        wal::{
            checkpoint::{Checkpoint, Underway},
            log::Log,
            snapshot::{Held, Newest},
        },
    },
};

/// Batches one commit takes at most: bounds how long the first of them waits for the last.
const GROUP_MAX: usize = 1_000;

/// Where commits run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitMode {
    /// On a writer thread of their own, but for those that come alone to a quick disk. At most `queue` batches wait; more
    /// are refused with [`CommitError::Overloaded`].
    Thread {
        /// Batches that may wait.
        queue: usize,
    },
    /// In the caller's task, one batch at a time: what a simulation needs to be the same every time.
    Inline,
}

impl Default for CommitMode {
    fn default() -> Self {
        Self::Thread { queue: 10_000 }
    }
}

/// The way to the writer.
#[derive(Debug)]
pub(crate) struct Committer {
    health: Arc<Health>,
    metrics: CommitMetrics,
    route: Route,
}

#[derive(Debug)]
enum Route {
    Thread { queue: Option<mpsc::Sender<Message>>, thread: Mutex<Option<JoinHandle<()>>>, shared: Arc<Shared> },
    Inline(Box<Mutex<Option<Writer>>>),
}

/// The writer, for the thread that has it as its task, and for who comes alone.
#[derive(Debug)]
struct Shared {
    /// None once it is closed.
    writer: Mutex<Option<Writer>>,
    /// Batches that were given to the thread and not answered yet. Who comes after them does not overtake them.
    before: AtomicUsize,
}

/// A sync that takes longer is left to the writer's thread: it would hold a thread of the runtime.
const QUICK: Duration = Duration::from_millis(1);

#[derive(Debug)]
enum Message {
    Commit(Prepared, oneshot::Sender<Result<(), CommitError>>),
    /// A checkpoint is made.
    Tend,
    /// The sender is let go of when everything is written.
    Close(oneshot::Sender<()>),
}

impl Committer {
    /// Starts the writer.
    ///
    /// # Errors
    /// The operating system's, where it has no thread to give.
    pub(crate) fn start(
        database: Database,
        log: Log,
        newest: Arc<Newest>,
        search_cursor: u128,
        damages: Damages,
        mode: CommitMode,
    ) -> std::io::Result<Self> {
        let health = Arc::new(Health::default());
        let metrics = CommitMetrics::of(damages);
        let mut writer = Writer {
            database: Arc::new(database),
            log,
            underway: None,
            wake: None,
            held: Held::of(newest.get().map_err(std::io::Error::other)?),
            newest,
            health: Arc::clone(&health),
            metrics: metrics.clone(),
            search_cursor,
            last_group: 0,
            last_took: Duration::MAX,
        };
        let route = match mode {
            CommitMode::Inline => Route::Inline(Box::new(Mutex::new(Some(writer)))),
            CommitMode::Thread { queue } => {
                let (sender, receiver) = mpsc::channel(queue.max(1));
                writer.wake = Some(sender.downgrade());
                let shared = Arc::new(Shared { writer: Mutex::new(Some(writer)), before: AtomicUsize::new(0) });
                let theirs = (Arc::clone(&shared), Arc::clone(&health));
                // A sync blocks for as long as the disk wants: but for a quick one it must not hold a worker of the runtime.
                // It and that of a checkpoint are the only ones below `Store`, and a simulation does without them.
                let thread = std::thread::Builder::new()
                    .name("committer".to_owned())
                    .spawn(move || write_queue(&theirs.0, theirs.1, receiver))?;
                Route::Thread { queue: Some(sender), thread: Mutex::new(Some(thread)), shared }
            }
        };
        Ok(Self { health, metrics, route })
    }

    /// Makes a group of batches durable, each whole or refused; answers in its order.
    pub(crate) async fn commit_group(&self, group: Vec<Prepared>) -> Vec<Result<(), CommitError>> {
        match &self.route {
            Route::Inline(writer) => self.write(writer, group),
            Route::Thread { .. } => {
                futures_util::future::join_all(group.into_iter().map(|batch| self.commit(batch))).await
            }
        }
    }

    fn write(&self, writer: &Mutex<Option<Writer>>, group: Vec<Prepared>) -> Vec<Result<(), CommitError>> {
        match unpoisoned(writer).as_mut() {
            Some(writer) => {
                let outcomes = writer.commit(group);
                writer.tend();
                outcomes
            }
            None => group.iter().map(|_| Err(self.closed())).collect(),
        }
    }

    /// Makes a batch durable or refuses it.
    pub(crate) async fn commit(&self, batch: Prepared) -> Result<(), CommitError> {
        match &self.route {
            Route::Inline(writer) => self.write(writer, vec![batch]).pop().expect("a writer answers every batch"),
            Route::Thread { queue, shared, .. } => {
                let queue = queue.as_ref().expect("the queue is taken only when the store is dropped");
                let batch = match write_alone(shared, batch) {
                    Ok(outcome) => return outcome,
                    Err(batch) => batch,
                };
                let (answer, answered) = oneshot::channel();
                shared.before.fetch_add(1, Ordering::SeqCst);
                let refused = match queue.try_send(Message::Commit(batch, answer)) {
                    Ok(()) => return answered.await.unwrap_or_else(|_| Err(self.health.unknown())),
                    Err(mpsc::error::TrySendError::Full(_)) => CommitError::Overloaded,
                    Err(mpsc::error::TrySendError::Closed(_)) => self.closed(),
                };
                shared.before.fetch_sub(1, Ordering::SeqCst);
                Err(refused)
            }
        }
    }

    /// Closed on purpose nothing was written; died of a failure nobody knows.
    fn closed(&self) -> CommitError {
        if self.health.failure().is_some() { self.health.unknown() } else { CommitError::Overloaded }
    }

    /// Writes what waits, then stops the writer. Later commits are refused with [`CommitError::Overloaded`].
    pub(crate) async fn close(&self) {
        match &self.route {
            Route::Inline(writer) => {
                if let Some(mut writer) = unpoisoned(writer).take() {
                    writer.finish();
                }
            }
            Route::Thread { queue, thread, .. } => {
                let queue = queue.as_ref().expect("the queue is taken only when the store is dropped");
                let (done, is_done) = oneshot::channel();
                if queue.send(Message::Close(done)).await.is_ok() {
                    // It never is sent anything: it ends with the writer.
                    let _ = is_done.await;
                }
                join(thread);
            }
        }
    }

    pub(crate) fn health(&self) -> &Health {
        &self.health
    }

    pub(crate) fn metrics(&self) -> &CommitMetrics {
        &self.metrics
    }

    /// Returns how many batches wait for the writer.
    pub(crate) fn waiting(&self) -> usize {
        match &self.route {
            Route::Thread { queue: Some(queue), .. } => queue.max_capacity() - queue.capacity(),
            Route::Thread { queue: None, .. } | Route::Inline(_) => 0,
        }
    }
}

/// Waits for the writer, so that whoever drops the store may open it again.
impl Drop for Committer {
    fn drop(&mut self) {
        if let Route::Thread { queue, thread, shared } = &mut self.route {
            drop(queue.take());
            join(thread);
            // It is here still where the thread panicked.
            if let Some(mut writer) = unpoisoned(&shared.writer).take() {
                writer.finish();
            }
        }
    }
}

fn join(thread: &Mutex<Option<JoinHandle<()>>>) {
    if let Some(thread) = unpoisoned(thread).take()
        && thread.join().is_err()
    {
        tracing::error!("committer panicked: the outcome of its last writes is unknown");
    }
}

fn unpoisoned<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The one who writes.
#[derive(Debug)]
struct Writer {
    database: Arc<Database>,
    log: Log,
    /// The checkpoint that is being made, of what is in the file the log turned from.
    underway: Option<Underway>,
    /// Tells the writer's thread to tend to it; none where there is no thread.
    wake: Option<mpsc::WeakSender<Message>>,
    held: Held,
    newest: Arc<Newest>,
    health: Arc<Health>,
    metrics: CommitMetrics,
    /// The last payment that is indexed for search.
    search_cursor: u128,
    /// How many batches the last commit had.
    last_group: usize,
    /// How long it took.
    last_took: Duration,
}

/// Writes a batch in the caller's thread, if it comes alone, the last commit was of one batch, too, and quick, and the
/// runtime has another thread to go on with; returns it otherwise.
fn write_alone(shared: &Shared, batch: Prepared) -> Result<Result<(), CommitError>, Prepared> {
    let has_company = shared.before.load(Ordering::SeqCst) > 0;
    let has_other_workers = || Handle::try_current().is_ok_and(|runtime| runtime.metrics().num_workers() > 1);
    if has_company || !has_other_workers() {
        return Err(batch);
    }
    let Ok(mut writer) = shared.writer.try_lock() else { return Err(batch) };
    let is_quick = |writer: &&mut Writer| writer.last_group == 1 && writer.last_took < QUICK;
    // What is due is for the thread, which sees to it after the next commit.
    match writer.as_mut().filter(|writer| is_quick(writer) && !writer.is_checkpoint_due()) {
        Some(writer) => Ok(writer.commit(vec![batch]).pop().expect("a writer answers every batch")),
        None => Err(batch),
    }
}

/// Tells the writer's thread that a checkpoint is made. Where the queue is full the thread has work and looks after that.
fn wake(queue: &mpsc::WeakSender<Message>) {
    if let Some(queue) = queue.upgrade() {
        let _ = queue.try_send(Message::Tend);
    }
}

/// Writes what waits, group after group, until the queue is closed.
fn write_queue(shared: &Shared, health: Arc<Health>, mut queue: mpsc::Receiver<Message>) {
    let _watch = Watch(health);
    let mut closing = Vec::new();
    while let Some(first) = queue.blocking_recv() {
        // On a core that is shared, whoever has something to commit gets there first: one sync for all of them. Where
        // nobody else can run this costs nothing, and nobody is waited for.
        std::thread::yield_now();
        let mut writer = unpoisoned(&shared.writer);
        let writer = writer.as_mut().expect("it is closed by this thread");
        let (mut batches, mut answers) = (Vec::new(), Vec::new());
        let mut next = Some(first);
        while let Some(message) = next {
            match message {
                Message::Commit(batch, answer) => {
                    batches.push(batch);
                    answers.push(answer);
                }
                Message::Tend => {}
                // What has come in by now is still written; then the queue is empty for good.
                Message::Close(done) => {
                    closing.push(done);
                    queue.close();
                }
            }
            next = if batches.len() < GROUP_MAX { queue.try_recv().ok() } else { None };
        }
        let count = batches.len();
        let outcomes = if batches.is_empty() { Vec::new() } else { writer.commit(batches) };
        for (answer, outcome) in answers.into_iter().zip(outcomes) {
            // A caller who has gone away needs no answer.
            let _ = answer.send(outcome);
        }
        shared.before.fetch_sub(count, Ordering::SeqCst);
        writer.tend();
    }
    if let Some(mut writer) = unpoisoned(&shared.writer).take() {
        writer.finish();
    }
}

impl Writer {
    /// Begins a checkpoint where one is due, and takes over from one that is made. Commits go on meanwhile, unless there are
    /// so many that memory would fill with them.
    fn tend(&mut self) {
        if self.health.failure().is_none()
            && let Err(fault) = self.see_to_checkpoint()
        {
            self.fail(&fault);
        }
    }

    fn see_to_checkpoint(&mut self) -> Result<(), Fault> {
        if let Some(underway) = &self.underway {
            let outcome = underway.outcome().or_else(|| self.is_checkpoint_due().then(|| self.wait_for(underway)));
            if let Some(outcome) = outcome {
                self.underway = None;
                outcome.and_then(|()| self.take_over())?;
            }
        }
        if self.underway.is_none() && self.is_checkpoint_due() {
            let checkpoint = self.freeze();
            self.underway = Some(match self.wake.clone() {
                Some(queue) => Underway::beside(checkpoint, Arc::clone(&self.health), move || wake(&queue)),
                None => Underway::Due(checkpoint),
            });
        }
        Ok(())
    }

    /// Says whether a checkpoint is to be begun, or to be waited for.
    fn is_checkpoint_due(&self) -> bool {
        self.log.is_filled(self.underway.as_ref().map_or(4, Underway::patience))
    }

    fn wait_for(&self, underway: &Underway) -> Result<(), Fault> {
        if self.wake.is_some() {
            self.metrics.held_up();
        }
        underway.wait()
    }

    /// Leaves what was committed until now to a checkpoint, and goes on in the other file of the log.
    fn freeze(&mut self) -> Checkpoint {
        let frozen = self.held.freeze();
        self.newest.publish(frozen.clone());
        Checkpoint {
            database: Arc::clone(&self.database),
            epoch: frozen.share_epoch(),
            turn: self.log.turn(),
            metrics: self.metrics.clone(),
        }
    }

    /// Reads from the database from now on what a checkpoint has written there.
    fn take_over(&mut self) -> Result<(), Fault> {
        self.newest.publish(self.held.thaw(&self.database)?.clone());
        Ok(())
    }

    /// Leaves the whole store in the database, so that the next start has nothing to put right, and nobody at work on it.
    fn finish(&mut self) {
        let underway = self.underway.take();
        if self.health.failure().is_some() {
            // It may fail, too; it is over.
            let _ = underway.and_then(Underway::failure);
        } else if let Err(fault) = self.fold_log(underway) {
            tracing::warn!(%fault, "write-ahead log not checkpointed: the next start replays it");
        }
    }

    fn fold_log(&mut self, underway: Option<Underway>) -> Result<(), Fault> {
        if let Some(underway) = underway {
            underway.wait().and_then(|()| self.take_over())?;
        }
        if !self.log.is_empty() {
            self.freeze().make()?;
        }
        self.log.clear()
    }

    fn fail(&self, fault: &Fault) {
        self.metrics.failed();
        self.health.fail(fault.to_string(), matches!(fault, Fault::Full(_)));
    }

    /// Writes a group; answers in its order.
    fn commit(&mut self, batches: Vec<Prepared>) -> Vec<Result<(), CommitError>> {
        let count = batches.len();
        let _watch = Watch(Arc::clone(&self.health));
        if self.health.failure().is_none() {
            match self.transact(batches) {
                Ok(outcomes) => return outcomes,
                Err(fault) => {
                    // A disk that has failed a checkpoint says no more than that it has failed to whoever asks next.
                    let first = self.underway.take().and_then(Underway::failure);
                    self.fail(&first.unwrap_or(fault));
                }
            }
        }
        (0..count).map(|_| Err(self.health.unknown())).collect()
    }

    fn transact(&mut self, batches: Vec<Prepared>) -> Result<Vec<Result<(), CommitError>>, Fault> {
        // The runtime's clock where there is one, so that a simulation sees its own; else the machine's.
        let begun = Instant::now();
        let count = batches.len();
        let (next, changes) = (self.held.newest().next(), self.log.begin());
        let mut group = Group::of(Draft::of(&next, &changes, self.held.horizon()), self.search_cursor);
        let outcomes = batches.into_iter().map(|batch| group.apply(batch)).collect::<Result<Vec<_>, Fault>>()?;
        let finished = group.finish()?;
        if changes.is_empty() {
            self.log.drop_empty(changes);
        } else {
            self.log.append(changes)?;
            self.newest.publish(next.clone());
            self.held.follow(next);
            self.search_cursor = finished.search_cursor;
        }
        (self.last_group, self.last_took) = (count, begun.elapsed());
        self.metrics.committed(count, finished.applied, self.last_took);
        // A refusal, too, is told only now: it may rest on what a neighbour has just made durable.
        Ok(outcomes)
    }
}
