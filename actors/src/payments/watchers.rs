//! Watches of payments: the current snapshot, then one after every change.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use engine::mutant;
use engine::{ids::PaymentId, payment::Payment};
use tokio::sync::mpsc;

/// Maximum number of snapshots that a slow watcher may lag before it is removed.
const BUFFER: usize = 16;
/// Minimum number of watchers for a purge of closed ones.
const PURGE_FROM: usize = 128;

/// A session now and after every change.
#[derive(Debug)]
pub struct Watch {
    /// The snapshot read after the watcher was added, until it is returned.
    first: Option<Arc<Payment>>,
    version: u64,
    /// `None` after a final state was returned.
    changes: Option<mpsc::Receiver<Arc<Payment>>>,
}

impl Watch {
    /// Returns the sender for the registry, and its receiver: the watcher is added before the current snapshot is read,
    /// so that no change is lost in between.
    pub(crate) fn channel() -> (mpsc::Sender<Arc<Payment>>, mpsc::Receiver<Arc<Payment>>) {
        mpsc::channel(BUFFER)
    }

    /// Begins with the current snapshot.
    pub(crate) fn new(current: Arc<Payment>, changes: mpsc::Receiver<Arc<Payment>>) -> Self {
        let changes = (!current.state.is_terminal()).then_some(changes);
        Self { version: current.version, first: Some(current), changes }
    }

    /// Returns the next snapshot: the current one first. `None` after a final state, or if the watcher lagged too far.
    pub async fn next(&mut self) -> Option<Arc<Payment>> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        let changes = self.changes.as_mut()?;
        loop {
            let changed = changes.recv().await?;
            // The current snapshot was read after the watcher was added, and may be newer than the first changes.
            if changed.version > self.version {
                self.version = changed.version;
                return Some(changed);
            }
        }
    }
}

/// The watchers of all payments. A closed one is removed at the next snapshot of its payment, or once the number of
/// watchers has doubled since the last purge, so that closed ones are at most as many as open ones, or a few.
#[derive(Debug)]
pub(crate) struct Watchers<T> {
    of: BTreeMap<PaymentId, Vec<mpsc::Sender<T>>>,
    /// Shared with the actors of payments, which publish nothing without watchers.
    count: Arc<AtomicUsize>,
    purge_at: usize,
}

impl<T> Watchers<T> {
    pub(crate) fn counted_in(count: Arc<AtomicUsize>) -> Self {
        Self { of: BTreeMap::new(), count, purge_at: PURGE_FROM }
    }

    /// Adds a watcher.
    pub(crate) fn add(&mut self, id: PaymentId, watcher: mpsc::Sender<T>) {
        if self.count.load(Ordering::SeqCst) >= self.purge_at {
            self.purge();
        }
        self.of.entry(id).or_default().push(watcher);
        self.count.fetch_add(1, Ordering::SeqCst);
    }

    /// Returns the watched payments.
    pub(crate) fn watched(&self) -> impl Iterator<Item = PaymentId> + '_ {
        let is_watched = |watchers: &Vec<mpsc::Sender<T>>| watchers.iter().any(|watcher| !watcher.is_closed());
        self.of.iter().filter(move |(_, watchers)| is_watched(watchers)).map(|(id, _)| *id)
    }

    fn purge(&mut self) {
        self.of.retain(|_, watchers| {
            watchers.retain(|watcher| !watcher.is_closed());
            !watchers.is_empty()
        });
        let left = self.of.values().map(Vec::len).sum();
        self.count.store(left, Ordering::SeqCst);
        self.purge_at = (2 * left).max(PURGE_FROM);
    }
}

impl<T: Clone> Watchers<T> {
    /// Sends a snapshot of a payment to its watchers; removes those that lag too far, and all of them after the last
    /// snapshot.
    pub(crate) fn publish(&mut self, id: PaymentId, snapshot: &T, is_last: bool) {
        let Some(watchers) = self.of.get_mut(&id) else { return };
        if !is_last && mutant!("watchers-not-notified") {
            return;
        }
        let before = watchers.len();
        watchers.retain(|watcher| watcher.try_send(snapshot.clone()).is_ok());
        if is_last {
            watchers.clear();
        }
        self.count.fetch_sub(before - watchers.len(), Ordering::SeqCst);
        if watchers.is_empty() {
            self.of.remove(&id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u128) -> PaymentId {
        PaymentId::from_bits(number)
    }

    #[test]
    fn watchers_that_are_gone_do_not_add_up() {
        let count = Arc::<AtomicUsize>::default();
        let mut watchers = Watchers::counted_in(Arc::clone(&count));
        let (sender, mut snapshots) = mpsc::channel(4);
        watchers.add(id(1), sender);
        for number in 0..10_000 {
            // A page that is loaded and closed again, of one payment or of many.
            watchers.add(id(number % 700), mpsc::channel(4).0);
            assert!(count.load(Ordering::SeqCst) <= PURGE_FROM, "{number}");
        }
        watchers.publish(id(1), &7, true);
        assert_eq!(snapshots.try_recv(), Ok(7), "who stays is not removed");
    }

    #[test]
    fn those_that_stay_are_never_removed() {
        let count = Arc::<AtomicUsize>::default();
        let mut watchers = Watchers::counted_in(Arc::clone(&count));
        let receivers: Vec<_> = (0..1_000)
            .map(|number| {
                let (sender, receiver) = mpsc::channel(4);
                watchers.add(id(number), sender);
                receiver
            })
            .collect();
        assert_eq!(count.load(Ordering::SeqCst), 1_000);
        for (number, mut receiver) in receivers.into_iter().enumerate() {
            watchers.publish(id(number as u128), &number, true);
            assert_eq!(receiver.try_recv(), Ok(number));
        }
        assert_eq!(count.load(Ordering::SeqCst), 0);
    }
}
