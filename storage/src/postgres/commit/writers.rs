//! Writers: each commits one group at a time on its own connection. Batches of one merchant have the same writer, so that they do not
//! contend for rows.

use std::{
    panic::AssertUnwindSafe,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::future::{BoxFuture, FutureExt as _};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
    time::Instant,
};

use crate::{
    batch::{Batch, CommitError, Resolution},
    embedded::metrics::CommitMetrics,
    postgres::{
        address::Address,
        commit::{
            group::{Context, Outcomes, decide},
            prepared::Prepared,
        },
        connection::{Connection, Installation},
        fault::Fault,
        ids::{Ids, pause},
        resolve,
    },
    record::vault::Vault,
};

/// Maximum number of batches in a group.
const MAX_GROUP: usize = 256;
/// Maximum number of batches in the queue of a writer; further ones are rejected with [`CommitError::Overloaded`].
const MAX_QUEUED: usize = 5_000;
/// Maximum attempts of a group; then each of its batches is committed alone.
const MAX_GROUP_ATTEMPTS: u32 = 4;
/// Maximum attempts of one batch; then it is rejected as unavailable.
const MAX_ATTEMPTS: u32 = 40;
/// How long a commit is retried while the database is unreachable.
const COMMIT_TIMEOUT: Duration = Duration::from_secs(5);

type Queued = (Prepared, oneshot::Sender<Result<(), CommitError>>);

/// A batch to commit; none closes the writer.
type Message = Option<Queued>;

/// The writers of a store and their queues.
#[derive(Debug)]
pub(crate) struct Writers {
    queues: Vec<mpsc::Sender<Message>>,
    workers: Mutex<Vec<JoinHandle<()>>>,
    shared: Arc<Shared>,
}

/// The state that all writers share.
pub(crate) struct Shared {
    pub(crate) address: Address,
    pub(crate) installation: Installation,
    pub(crate) vault: Vault,
    pub(crate) ids: Ids,
    pub(crate) metrics: CommitMetrics,
    waiting: AtomicUsize,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Shared({})", self.address)
    }
}

impl Shared {
    pub(crate) fn new(address: Address, installation: Installation, vault: Vault, ids: Ids) -> Self {
        let (metrics, waiting) = (CommitMetrics::default(), AtomicUsize::new(0));
        Self { address, installation, vault, ids, metrics, waiting }
    }

    /// Establishes a connection to the same database.
    ///
    /// # Errors
    /// [`Fault::Lost`] if the database is unreachable.
    pub(crate) async fn connect(&self) -> Result<Connection, Fault> {
        let opened = Connection::open_checked(&self.address, Some(&self.installation)).await;
        opened.map(|(connection, _)| connection).map_err(|error| Fault::Lost(error.to_string()))
    }
}

impl Writers {
    /// Starts a writer for each connection.
    pub(crate) fn start(connections: Vec<Connection>, shared: Arc<Shared>) -> Self {
        let (mut queues, mut workers) = (Vec::new(), Vec::new());
        for connection in connections {
            let (queue, inbox) = mpsc::channel(MAX_QUEUED);
            let writer = Writer { connection: Some(connection), shared: Arc::clone(&shared) };
            queues.push(queue);
            workers.push(tokio::spawn(writer.run(inbox)));
        }
        Self { queues, workers: Mutex::new(workers), shared }
    }

    /// Commits a batch or rejects it as a whole.
    pub(crate) async fn commit(&self, batch: Batch) -> Result<(), CommitError> {
        let prepared = Prepared::of(batch);
        let merchant = prepared.merchant().map_or(0, engine::ids::MerchantId::bits);
        // Ids begin with a time: their last bits are random.
        let writer = usize::try_from(merchant % self.queues.len() as u128).unwrap_or(0);
        let (reply, outcome) = oneshot::channel();
        self.queues[writer].try_send(Some((prepared, reply))).map_err(|_| CommitError::Overloaded)?;
        let _waiting = Waiting::on(&self.shared.waiting);
        // A writer sends every outcome before it ends.
        outcome.await.unwrap_or_else(|_| Err(CommitError::Unknown("the committer is gone".to_owned())))
    }

    /// Returns how many batches wait for their outcome.
    pub(crate) fn waiting(&self) -> usize {
        self.shared.waiting.load(Ordering::Relaxed)
    }

    /// Commits the queued batches and ends. Later commits are rejected with [`CommitError::Overloaded`].
    pub(crate) async fn close(&self) {
        let workers = std::mem::take(&mut *self.workers.lock().unwrap_or_else(PoisonError::into_inner));
        for queue in &self.queues {
            let _ = queue.send(None).await;
        }
        for worker in workers {
            let _ = worker.await;
        }
    }
}

/// Counts a batch until its caller has the outcome or is gone.
struct Waiting<'w>(&'w AtomicUsize);

impl<'w> Waiting<'w> {
    fn on(count: &'w AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One writer.
struct Writer {
    connection: Option<Connection>,
    shared: Arc<Shared>,
}

impl Writer {
    async fn run(mut self, mut inbox: mpsc::Receiver<Message>) {
        let mut is_open = true;
        while is_open {
            let Some(first) = inbox.recv().await else { return };
            let mut messages = vec![first];
            while messages.len() < MAX_GROUP {
                let Ok(next) = inbox.try_recv() else { break };
                messages.push(next);
            }
            is_open = messages.iter().all(Option::is_some);
            if !is_open {
                inbox.close();
                messages.extend(std::iter::from_fn(|| inbox.try_recv().ok()));
            }
            let group: Vec<Queued> = messages.into_iter().flatten().collect();
            if group.is_empty() {
                continue;
            }
            let (batches, replies): (Vec<_>, Vec<_>) = group.into_iter().unzip();
            let begun = Instant::now();
            let outcomes = self.commit_or_restart(&batches, begun + COMMIT_TIMEOUT).await;
            let applied = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
            self.shared.metrics.committed(outcomes.len(), applied, begun.elapsed());
            for (reply, outcome) in replies.into_iter().zip(outcomes) {
                let _ = reply.send(outcome);
            }
        }
    }

    /// Commits batches as one group. After a panic their outcomes are unknown, and the writer goes on with a new connection.
    async fn commit_or_restart(&mut self, batches: &[Prepared], deadline: Instant) -> Outcomes {
        if let Ok(outcomes) = AssertUnwindSafe(self.commit(batches, 0, deadline)).catch_unwind().await {
            return outcomes;
        }
        tracing::error!(batches = batches.len(), "a writer of the store panicked and starts again");
        self.connection = None;
        batches.iter().map(|_| Err(CommitError::Unknown("the writer panicked".to_owned()))).collect()
    }

    /// Commits batches as one group. Commits them one by one if a single one may be the cause of a failure, or if other writers are
    /// in the way too often; `tried` is how often they were.
    fn commit<'w>(&'w mut self, batches: &'w [Prepared], tried: u32, deadline: Instant) -> BoxFuture<'w, Outcomes> {
        Box::pin(async move {
            let (mut is_careful, mut contended) = (tried > 0, tried);
            for attempt in 1.. {
                let fault = match self.attempt(batches, is_careful, deadline).await {
                    Ok(outcomes) => return outcomes,
                    Err(fault) => fault,
                };
                let is_contended = matches!(fault, Fault::Contended(_) | Fault::Outdated(_));
                contended += u32::from(is_contended);
                let is_of_one = matches!(fault, Fault::Damaged { .. } | Fault::Failed(_));
                if batches.len() > 1 && (is_of_one || contended >= MAX_GROUP_ATTEMPTS) {
                    let mut outcomes = Vec::with_capacity(batches.len());
                    for batch in batches {
                        let one = std::slice::from_ref(batch);
                        outcomes.extend(self.commit(one, MAX_GROUP_ATTEMPTS, deadline).await);
                    }
                    return outcomes;
                }
                is_careful |= matches!(fault, Fault::Outdated(_));
                let refusal = match refusal(fault, Instant::now() >= deadline) {
                    None if contended >= MAX_ATTEMPTS => Some(unavailable("other writers are in the way".to_owned())),
                    refusal => refusal,
                };
                if let Some(refusal) = refusal {
                    return batches.iter().map(|_| Err(refusal.clone())).collect();
                }
                tokio::time::sleep(pause(attempt)).await;
            }
            unreachable!("attempts do not end by themselves")
        })
    }

    /// Tries once. A fault means that nothing was written.
    async fn attempt(&mut self, batches: &[Prepared], is_careful: bool, deadline: Instant) -> Result<Outcomes, Fault> {
        let connection = match self.connection.take().filter(|connection| !connection.is_closed()) {
            Some(connection) => connection,
            None => self.shared.connect().await?,
        };
        let (id, slot) = (self.shared.ids.next(), self.shared.ids.slot());
        let context = Context { vault: &self.shared.vault, slot, is_careful };
        let decided = decide(&connection, batches, id, &context).await;
        let decided = match decided {
            Err(Fault::Lost(why) | Fault::TimedOut(why)) => return Err(Fault::Lost(why)),
            Err(Fault::Unusable(why)) => return Err(Fault::Busy(why)),
            decided => decided,
        };
        let Some(statement) = decided.as_ref().ok().and_then(|decided| decided.statement.as_ref()) else {
            self.connection = Some(connection);
            return decided.map(|decided| decided.outcomes);
        };
        let written = connection.write(&statement.sql(), &statement.parameters()).await;
        match written {
            Ok(_) => {}
            Err(Fault::Lost(why) | Fault::TimedOut(why)) => match resolve::until(&self.shared, id, deadline).await {
                Ok((connection, Resolution::Applied)) => self.connection = Some(connection),
                Ok((connection, Resolution::Forbidden)) => {
                    self.connection = Some(connection);
                    return Err(Fault::Lost(why));
                }
                Err(_) => {
                    let unknown = |_| Err(CommitError::Unknown(why.clone()));
                    return decided.map(|decided| decided.outcomes.into_iter().map(unknown).collect());
                }
            },
            Err(Fault::Unusable(why)) => return Err(Fault::Busy(why)),
            Err(fault) => {
                self.connection = Some(connection);
                return Err(fault);
            }
        }
        if self.connection.is_none() {
            self.connection = Some(connection);
        }
        decided.map(|decided| decided.outcomes)
    }
}

/// Returns the error for the caller of a batch, unless the commit can be retried.
fn refusal(fault: Fault, is_late: bool) -> Option<CommitError> {
    match fault {
        // The batch is rejected: a row that it would replace is damaged, as its caller will find when it reads the row.
        Fault::Damaged { .. } => {
            tracing::error!(%fault, "refused a write: {fault}");
            Some(CommitError::Conflict { what: fault.to_string() })
        }
        Fault::Failed(why) | Fault::NewerSchema(why) => {
            tracing::error!(why, "the database refused a write");
            Some(unavailable(why))
        }
        Fault::Lost(why) | Fault::Busy(why) if is_late => Some(unavailable(why)),
        _ => None,
    }
}

/// Returns the error of a batch that was not written because the database is unreachable.
pub(crate) fn unavailable(why: String) -> CommitError {
    tracing::warn!(why, "database unavailable");
    CommitError::Unavailable(why)
}
