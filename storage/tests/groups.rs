//! Tests of group commit: one sync for waiting batches, rejections, a full queue, a failing disk.

use futures_util::{future::join_all, poll};
use storage::{Batch, CommitError, PaymentQuery, ReadError, Write, prelude::*};

use crate::{disk::Gate, samples::*};

#[tokio::test]
async fn waiting_batches_share_one_sync_and_a_rejection_affects_no_other() {
    let gate = Gate::default();
    let store = gate.open(100);
    gate.block();
    let mut first = store.commit(create(&payment(1, 1)));
    assert!(poll!(&mut first).is_pending());
    gate.sync_is_blocked().await;
    let before = gate.syncs();
    // While the first sync is blocked, these accumulate: new ones, a repeat of the first, and a repeat within the
    // group.
    let numbers = [2, 3, 1, 4, 3, 5];
    let mut waiting = Box::pin(join_all(numbers.map(|number| store.commit(create(&payment(1, number))))));
    assert!(poll!(&mut waiting).is_pending());
    gate.unblock();
    first.await.unwrap();
    let outcomes: Vec<bool> = waiting.await.iter().map(Result::is_ok).collect();
    assert_eq!(outcomes, [true, true, false, true, false, true]);
    assert_eq!(gate.syncs() - before, 2, "one for the first, one for the whole group");
    let page = store.payments(PaymentQuery::all(merchant_id(1), 10)).await.unwrap();
    assert_eq!((page.total, page.items.len()), (5, 5));
}

#[tokio::test]
async fn a_group_of_rejected_batches_needs_no_sync() {
    let gate = Gate::default();
    let store = gate.open(100);
    store.commit(create(&payment(1, 1))).await.unwrap();
    let before = gate.syncs();
    assert!(matches!(store.commit(create(&payment(1, 1))).await, Err(CommitError::Conflict { .. })));
    assert_eq!(gate.syncs(), before);
}

#[tokio::test]
async fn a_full_queue_rejects_batches_and_writes_nothing() {
    let gate = Gate::default();
    let store = gate.open(2);
    gate.block();
    let mut first = store.commit(create(&payment(1, 1)));
    assert!(poll!(&mut first).is_pending());
    gate.sync_is_blocked().await;
    let mut queued = [2, 3].map(|number| store.commit(create(&payment(1, number))));
    for queued in &mut queued {
        assert!(poll!(queued).is_pending());
    }
    assert_eq!(store.commit(create(&payment(1, 4))).await, Err(CommitError::Overloaded));
    gate.unblock();
    assert_eq!(first.await, Ok(()));
    assert_eq!(join_all(queued).await, [Ok(()), Ok(())]);
    assert_eq!(store.payment(payment_id(4)).await.unwrap(), None);
    store.commit(create(&payment(1, 4))).await.unwrap();
}

#[tokio::test]
async fn closing_commits_waiting_batches_and_rejects_later_ones() {
    let gate = Gate::default();
    let store = gate.open(100);
    gate.block();
    let mut first = store.commit(create(&payment(1, 1)));
    assert!(poll!(&mut first).is_pending());
    gate.sync_is_blocked().await;
    let mut second = store.commit(create(&payment(1, 2)));
    assert!(poll!(&mut second).is_pending());
    let mut closing = Box::pin(store.close());
    assert!(poll!(&mut closing).is_pending());
    gate.unblock();
    closing.await;
    assert_eq!((first.await, second.await), (Ok(()), Ok(())));
    assert_eq!(store.commit(create(&payment(1, 3))).await, Err(CommitError::Overloaded));
    assert!(matches!(store.payment(payment_id(1)).await, Err(ReadError::Failed(why)) if why == "the store is closed"));
    store.close().await;
    assert_eq!(store.failure(), None);
}

#[tokio::test]
async fn an_inline_store_can_be_closed() {
    let store = in_memory();
    store.commit(create(&payment(1, 1))).await.unwrap();
    store.close().await;
    assert_eq!(store.commit(create(&payment(1, 2))).await, Err(CommitError::Overloaded));
}

#[tokio::test]
async fn a_failed_sync_makes_every_waiting_outcome_unknown_and_stops_writes() {
    let gate = Gate::default();
    let store = gate.open(100);
    store.commit(create(&payment(1, 1))).await.unwrap();
    gate.block();
    let mut first = store.commit(create(&payment(1, 2)));
    assert!(poll!(&mut first).is_pending());
    gate.sync_is_blocked().await;
    let mut waiting = Box::pin(join_all([3, 1].map(|number| store.commit(create(&payment(1, number))))));
    let mut failed = Box::pin(store.failed());
    assert!(poll!(&mut waiting).is_pending());
    assert!(poll!(&mut failed).is_pending());
    gate.fail_syncs();
    let unknown = |outcome: &Result<(), CommitError>| matches!(outcome, Err(CommitError::Unknown(_)));
    assert!(unknown(&first.await));
    assert!(waiting.await.iter().all(unknown), "unknown, even for a batch that would have been rejected");
    assert!(failed.await.contains("the disk failed"));
    assert_eq!(store.failed().await, store.failure().unwrap());
    assert!(unknown(&store.commit(create(&payment(1, 9))).await));
    store.close().await;
    assert!(unknown(&store.commit(create(&payment(1, 9))).await), "a failure is never reported as a rejection");
}

#[tokio::test]
async fn concurrent_batches_have_the_same_outcomes_as_sequential_ones() {
    let data = tempfile::tempdir().unwrap();
    let store = open(data.path());
    let chain = |to: u32| Write::Cursor { cursor: cursor(to), expected: (to > 1).then(|| cursor(to - 1)) };
    // Every second batch depends on the one before, every third is a repeat.
    let batches = (1..=300u32).map(|number| match number % 3 {
        0 => Batch::of(Write::Event(event(1, u64::from(number - 1)))),
        _ => Batch::of(Write::Event(event(1, u64::from(number)))).and(chain(number - number / 3)),
    });
    let outcomes = join_all(batches.map(|batch| store.commit(batch))).await;
    for (number, outcome) in (1..=300u32).zip(&outcomes) {
        assert_eq!(outcome.is_ok(), number % 3 != 0, "{number}: {outcome:?}");
    }
    assert_eq!(store.cursor().await.unwrap(), Some(cursor(200)));
    let events = store.events(merchant_id(1), 0, 1_000).await.unwrap();
    assert!(events.iter().map(|event| event.seq).eq(1..=200));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_uncontended_commit_to_a_fast_disk_runs_on_the_calling_thread() {
    let gate = Gate::default();
    let store = gate.open(100);
    // Whether the previous commit was fast depends on the machine.
    for number in 1..=10_000 {
        store.commit(create(&payment(1, number))).await.unwrap();
        if gate.last_thread() != "committer" {
            assert_eq!(store.payments(PaymentQuery::all(merchant_id(1), 1)).await.unwrap().total, number);
            return;
        }
    }
    panic!("the writer thread committed every batch");
}

#[tokio::test]
async fn a_sync_never_blocks_the_only_thread_of_a_runtime() {
    let gate = Gate::default();
    let store = gate.open(100);
    for number in 1..=200 {
        store.commit(create(&payment(1, number))).await.unwrap();
        assert_eq!(gate.last_thread(), "committer");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn contended_and_uncontended_writers_commit_every_batch_once_and_in_order() {
    const WRITERS: u64 = 6;
    const EACH: u64 = 150;
    let data = tempfile::tempdir().unwrap();
    let store = std::sync::Arc::new(open(data.path()));
    let writers = (0..WRITERS).map(|writer| {
        let store = std::sync::Arc::clone(&store);
        tokio::spawn(async move {
            for number in (1..=EACH).map(|number| writer * EACH + number) {
                // Two concurrent batches, of which the second depends on the first: the order must be kept.
                let opened = payment(1, number);
                let mut changed = opened.clone();
                changed.version += 1;
                let first = store.commit(create(&opened));
                let then = store.commit(replace(&changed, opened.version).and(Write::Event(event(1, number))));
                let outcomes = futures_util::future::join(first, then).await;
                assert_eq!(outcomes, (Ok(()), Ok(())));
                assert!(
                    store.payment(payment_id(number)).await.unwrap().is_some(),
                    "an acknowledged write is readable"
                );
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    let events = store.events(merchant_id(1), 0, 1_000).await.unwrap();
    assert!(events.iter().map(|event| event.seq).eq(1..=WRITERS * EACH));
    let announced: std::collections::BTreeSet<_> = events.iter().map(|event| event.payment).collect();
    assert_eq!(announced, (1..=WRITERS * EACH).map(payment_id).collect());
}
