//! The store between the actors and the real redb: commits take their time, are sometimes refused for want of room,
//! and everybody who watches hears of them.

use std::sync::{Arc, Mutex};

use engine::{payment::Credit, time::Timestamp};
use futures_util::future::BoxFuture;
use storage::{Batch, CommitError, EmbeddedStore, Read, ReadError, Store, Wrapped, Write, prelude::*};

use tokio::sync::oneshot;

use crate::{
    options::Fault,
    simulation::{Simulation, lock},
    trace::Lane,
};

/// A real store in a simulated simulation. Commits come in groups, as they do on a real disk: while one is being synced the
/// next gathers.
pub(crate) struct SimStore {
    sim: Arc<Simulation>,
    inner: Arc<EmbeddedStore>,
    queue: Arc<Mutex<Queue>>,
}

#[derive(Default)]
struct Queue {
    waiting: Vec<Waiting>,
    is_writing: bool,
}

struct Waiting {
    batch: Batch,
    answer: oneshot::Sender<Result<(), CommitError>>,
}

impl SimStore {
    pub(crate) fn of(sim: Arc<Simulation>, inner: Arc<EmbeddedStore>) -> Self {
        Self { sim, inner, queue: Arc::default() }
    }

    /// Shows every row as it is stored.
    ///
    /// # Errors
    /// The store's.
    pub(crate) fn each_row(&self, see: &mut impl FnMut(storage::Row)) -> Result<(), ReadError> {
        self.inner.each_row_inline(see)
    }

    async fn commit_in_time(&self, batch: Batch) -> Result<(), CommitError> {
        let sim = &self.sim;
        sim.alive().await;
        if sim.is_store_busy() {
            sim.fault(Lane::Disk, Fault::StoreBusy.word(), 0, || "the store's queue is full: refused".to_owned());
            return Err(CommitError::Overloaded);
        }
        let (answer, answered) = oneshot::channel();
        let begins = {
            let mut queue = lock(&self.queue);
            queue.waiting.push(Waiting { batch, answer });
            !std::mem::replace(&mut queue.is_writing, true)
        };
        if begins {
            tokio::spawn(write(Arc::clone(sim), Arc::clone(&self.inner), Arc::clone(&self.queue)));
        }
        // Nobody answers when the process dies.
        match answered.await {
            Ok(outcome) => outcome,
            Err(_) => std::future::pending().await,
        }
    }
}

/// Writes groups until nobody waits.
async fn write(sim: Arc<Simulation>, inner: Arc<EmbeddedStore>, queue: Arc<Mutex<Queue>>) {
    loop {
        let (before_ms, after_ms) = sim.commit_times();
        sim.sleep(before_ms).await;
        sim.alive().await;
        let group = {
            let mut queue = lock(&queue);
            if queue.waiting.is_empty() {
                queue.is_writing = false;
                return;
            }
            std::mem::take(&mut queue.waiting)
        };
        let outcomes = inner.commit_group(group.iter().map(|waiting| waiting.batch.clone()).collect()).await;
        for (waiting, outcome) in group.iter().zip(&outcomes) {
            watch(&sim, &waiting.batch, outcome);
        }
        sim.sleep(after_ms).await;
        // Power that went inside the commit: nobody is left to hear of its outcome.
        sim.alive().await;
        for (waiting, outcome) in group.into_iter().zip(outcomes) {
            let _ = waiting.answer.send(outcome);
        }
    }
}

/// Tells everybody who watches what became of a batch.
fn watch(sim: &Simulation, batch: &Batch, outcome: &Result<(), CommitError>) {
    match outcome {
        Ok(()) => {
            sim.trace_commit(batch);
            sim.observe(|observer| observer.committed(batch));
        }
        Err(CommitError::Unknown(why)) => {
            sim.event(Lane::Disk, "commit.unknown", None, 0, || format!("a commit's outcome is unknown: {why}"));
            sim.observe(|observer| observer.unknown_commits.push(batch.clone()));
        }
        Err(refused) => {
            sim.event(Lane::Disk, "commit.refused", None, 0, || format!("a commit is refused: {refused}"));
            sim.mark("a stale or doubled write is refused");
        }
    }
}

impl Wrapped for SimStore {
    type Inner = EmbeddedStore;

    fn inner(&self) -> &EmbeddedStore {
        &self.inner
    }

    fn around<'a, T: Send + 'a>(&'a self, name: &'static str, read: Read<'a, T>) -> Read<'a, T> {
        Box::pin(async move {
            self.sim.alive().await;
            let answer = read.await;
            match &answer {
                Err(ReadError::Damaged { .. }) => self.sim.mark("a damaged row is met"),
                Err(ReadError::Failed(_)) => self.sim.read_fails(name),
                Ok(_) => {}
            }
            // Nobody reads on after the process died in the middle of it.
            self.sim.alive().await;
            answer
        })
    }
}

impl Store for SimStore {
    fn commit(&self, batch: Batch) -> BoxFuture<'_, Result<(), CommitError>> {
        Box::pin(self.commit_in_time(batch))
    }

    fn index_search(&self, now: Timestamp, max: usize) -> BoxFuture<'_, Result<usize, CommitError>> {
        Box::pin(async move {
            self.sim.alive().await;
            let indexed = self.inner.index_search(now, max).await;
            self.sim.alive().await;
            indexed
        })
    }
}

/// Returns whether a batch whose outcome is unknown is in the store after all.
///
/// # Errors
/// The store's.
pub(crate) async fn is_applied(store: &EmbeddedStore, batch: &Batch) -> Result<bool, ReadError> {
    for write in &batch.writes {
        let applied = match write {
            Write::Payment { payment, .. } => {
                store.payment(payment.id).await?.is_some_and(|stored| stored == **payment)
            }
            Write::Transfer { payment, credit, .. } => {
                let stored = store.transfer(*payment, credit.tx_id, credit.op_in_tx).await?;
                stored.is_some_and(|stored| Credit { memo: credit.memo.clone(), ..stored } == **credit)
            }
            Write::Merchant { merchant, .. } => {
                store.merchant(merchant.id).await?.is_some_and(|stored| *stored == **merchant)
            }
            Write::Claim(claimed) => store.claim(claimed.tx_id).await?.is_some(),
            Write::ClaimOutcome { tx_id, outcome, .. } => {
                store.claim(*tx_id).await?.is_some_and(|stored| stored.outcome == *outcome)
            }
            Write::Attempt { attempt, .. } => store.attempts(attempt.event).await?.contains(attempt),
            Write::Cursor { cursor, .. } => store.cursor().await? == Some(*cursor),
            Write::BeginEpoch(epoch) => store.epoch().await? == *epoch,
            Write::Rate(rate) => store.rate().await? == Some(*rate),
            Write::Undeliverable(delivery) | Write::Hold(delivery) => {
                let waiting = store.due_deliveries(Timestamp::MAX, usize::MAX).await?;
                !waiting.iter().any(|waiting| waiting.id == delivery.id)
            }
            Write::Handle { account, place, handling, .. } => {
                store.unmatched_at(*account, *place).await?.is_some_and(|stored| stored.handling == *handling)
            }
            Write::Invoice(invoicing) => {
                let (merchant, month) = (invoicing.period.merchant, invoicing.period.month);
                let stored = store.period(merchant, month).await?;
                stored.is_some_and(|stored| stored.invoice.as_ref() == Some(&invoicing.invoice))
            }
            Write::FeeTiers { schedule, .. } => store.fee_schedule().await?.as_ref() == Some(schedule),
            Write::Redeliver(delivery) => store.delivery(delivery.merchant, delivery.id).await?.is_some(),
            Write::Replay { delivery, .. } => {
                let logged = store.delivery(delivery.merchant, delivery.id).await?;
                logged.is_some_and(|logged| !logged.is_replayable())
            }
            Write::EnableEndpoint { .. }
            | Write::Unwatch(_)
            | Write::ForgetClaims(_)
            | Write::Prune { .. }
            | Write::Comply(_)
            | Write::Admit { .. }
            | Write::Standing { .. } => continue,
            // The place up to which something is read, in one batch with what was found there.
            Write::Note { name, value } => store.note(name).await?.as_ref() == Some(value),
            Write::Books(day) => store.books(None, usize::MAX).await?.contains(day),
            Write::Event(_) | Write::Audit(_) | Write::Unmatched(_) | Write::Remember { .. } | Write::Forget { .. } => {
                continue;
            }
        };
        return Ok(applied);
    }
    Ok(false)
}
