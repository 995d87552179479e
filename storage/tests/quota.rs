//! Tests of a merchant's quota: it can be filled but not exceeded, also concurrently, after a restart and after a
//! restore.

use std::{path::Path, sync::Arc};

use engine::{
    payment::{Payment, State},
    quota::{Quota, QuotaExceeded},
};
use storage::{Batch, CommitError, EmbeddedStore, Idle, NewStore, Options, Write, prelude::*};
use tokio::task::JoinSet;

use crate::samples::*;

fn admitted(payment: &Payment, quota: Quota) -> Batch {
    let (id, merchant) = (payment.id, payment.merchant);
    create(payment).and(Write::Admit { payment: id, merchant, quota })
}

/// Adds merchants to a store for their payments.
async fn with_merchants(store: EmbeddedStore) -> EmbeddedStore {
    for owner in [1, 2] {
        // After a restart they exist already.
        let _ = store.commit(Batch::of(Write::Merchant { merchant: Box::new(merchant(owner)), expected: None })).await;
    }
    store
}

fn in_state(payment: &Payment, state: State) -> Payment {
    Payment { version: payment.version + 1, state, ..payment.clone() }
}

const THREE_OPEN: Quota = Quota { open_payments: 3, stored_bytes: 0 };
const FULL: Result<(), CommitError> = Err(CommitError::QuotaReached(QuotaExceeded::OpenPayments { limit: 3 }));

#[tokio::test]
async fn a_limit_of_open_payments_counts_those_that_are_not_final() {
    let store = with_merchants(in_memory()).await;
    for number in 1..=3 {
        store.commit(admitted(&payment(1, number), THREE_OPEN)).await.unwrap();
    }
    assert_eq!(store.commit(admitted(&payment(1, 4), THREE_OPEN)).await, FULL);
    assert_eq!(store.payment(payment_id(4)).await.unwrap(), None, "the rejected batch writes nothing");
    store.commit(admitted(&payment(2, 5), THREE_OPEN)).await.expect("another merchant has its own quota");
    let processing = in_state(&payment(1, 1), State::Processing);
    store.commit(replace(&processing, 1)).await.unwrap();
    assert_eq!(store.commit(admitted(&payment(1, 4), THREE_OPEN)).await, FULL, "a processing payment counts as open");
    for (number, end) in (2..).zip([State::SystemCancelled, State::UserCancelled]) {
        store.commit(replace(&in_state(&payment(1, number), end), 1)).await.unwrap();
        store.commit(admitted(&payment(1, 10 + number), THREE_OPEN)).await.unwrap();
        assert_eq!(store.commit(admitted(&payment(1, 20), THREE_OPEN)).await, FULL);
    }
    store.commit(replace(&in_state(&processing, State::Failed), 2)).await.unwrap();
    store.commit(admitted(&payment(1, 20), THREE_OPEN)).await.unwrap();
    store.commit(create(&payment(1, 30))).await.expect("no limit without a quota");
    assert!(store.verify().await.unwrap().is_sound());
}

/// Returns the stored size of a payment: the smallest quota that accepts it.
async fn bytes_of(payment: &Payment) -> u64 {
    let store = in_memory();
    for stored_bytes in 1.. {
        if store.commit(admitted(payment, Quota { open_payments: 0, stored_bytes })).await.is_ok() {
            return stored_bytes;
        }
    }
    unreachable!("some limit accepts it");
}

#[tokio::test]
async fn a_limit_of_stored_bytes_counts_growing_records() {
    let one = bytes_of(&payment(1, 1)).await;
    let quota = Quota { open_payments: 0, stored_bytes: 2 * one };
    let full: Result<(), _> = Err(CommitError::QuotaReached(QuotaExceeded::StoredBytes { limit: 2 * one }));
    let store = with_merchants(in_memory()).await;
    store.commit(admitted(&payment(1, 1), quota)).await.unwrap();
    let longer = Payment { version: 2, description: "x".repeat(200), ..payment(1, 1) };
    store.commit(replace(&longer, 1)).await.unwrap();
    assert_eq!(store.commit(admitted(&payment(1, 2), quota)).await, full);
    store.commit(replace(&Payment { version: 3, ..payment(1, 1) }, 2)).await.unwrap();
    store.commit(admitted(&payment(1, 2), quota)).await.expect("a shorter record frees quota");
    store.commit(replace(&in_state(&payment(1, 2), State::UserCancelled), 1)).await.unwrap();
    assert_eq!(store.commit(admitted(&payment(1, 3), quota)).await, full, "final payments still take space");
    assert!(store.verify().await.unwrap().is_sound());
}

/// Opens a store and returns how many of fifty concurrent creations succeed.
async fn race(data: &Path, first: u64) -> usize {
    let store = Arc::new(with_merchants(EmbeddedStore::open(data, Options::default()).unwrap()).await);
    let mut creations = JoinSet::new();
    for number in first..first + 50 {
        let store = Arc::clone(&store);
        creations.spawn(async move {
            store.commit(admitted(&payment(1, number), Quota { open_payments: 20, stored_bytes: 0 })).await.is_ok()
        });
    }
    let mut through = 0;
    while let Some(is_through) = creations.join_next().await {
        through += usize::from(is_through.unwrap());
    }
    store.close().await;
    through
}

#[tokio::test]
async fn concurrent_creations_fill_a_quota_exactly_also_after_a_restart_and_a_restore() {
    let folder = tempfile::tempdir().unwrap();
    let (data, backup, again) = (folder.path().join("a"), folder.path().join("backup"), folder.path().join("b"));
    assert_eq!(race(&data, 100).await, 20);
    assert_eq!(race(&data, 200).await, 0, "after a restart");
    let mut copy = NewStore::create(&backup).unwrap();
    Idle::take_store(&data).unwrap().read(false, |row| copy.put(row)).unwrap();
    copy.finish(true).unwrap();
    Idle::take(&again).unwrap().restore(&backup, false).unwrap();
    assert_eq!(race(&again, 300).await, 0, "after a restore");
}
