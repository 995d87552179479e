//! Group commit: one sync for all who wait, a refusal that harms nobody else, a full queue, a disk that dies.

use futures_util::{future::join_all, poll};
use storage::{Batch, CommitError, PaymentQuery, ReadError, Write, prelude::*};

use crate::{disk::Gate, samples::*};

#[tokio::test]
async fn all_who_wait_share_one_sync_and_a_refusal_harms_nobody_else() {
    let gate = Gate::default();
    let store = gate.open(100);
    gate.shut();
    let mut first = store.commit(create(&payment(1, 1)));
    assert!(poll!(&mut first).is_pending());
    gate.somebody_waits().await;
    let before = gate.syncs();
    // While the first sync is held up, these gather: new ones, a repeat of the first, and a repeat within the group.
    let numbers = [2, 3, 1, 4, 3, 5];
    let mut waiting = Box::pin(join_all(numbers.map(|number| store.commit(create(&payment(1, number))))));
    assert!(poll!(&mut waiting).is_pending());
    gate.let_through();
    first.await.unwrap();
    let outcomes: Vec<bool> = waiting.await.iter().map(Result::is_ok).collect();
    assert_eq!(outcomes, [true, true, false, true, false, true]);
    assert_eq!(gate.syncs() - before, 2, "one for the first, one for the whole group");
    let page = store.payments(PaymentQuery::all(merchant_id(1), 10)).await.unwrap();
    assert_eq!((page.total, page.items.len()), (5, 5));
}

#[tokio::test]
async fn a_group_of_refusals_costs_no_sync() {
    let gate = Gate::default();
    let store = gate.open(100);
    store.commit(create(&payment(1, 1))).await.unwrap();
    let before = gate.syncs();
    assert!(matches!(store.commit(create(&payment(1, 1))).await, Err(CommitError::Conflict { .. })));
    assert_eq!(gate.syncs(), before);
}

#[tokio::test]
async fn a_full_queue_refuses_and_writes_nothing() {
    let gate = Gate::default();
    let store = gate.open(2);
    gate.shut();
    let mut first = store.commit(create(&payment(1, 1)));
    assert!(poll!(&mut first).is_pending());
    gate.somebody_waits().await;
    let mut queued = [2, 3].map(|number| store.commit(create(&payment(1, number))));
    for queued in &mut queued {
        assert!(poll!(queued).is_pending());
    }
    assert_eq!(store.commit(create(&payment(1, 4))).await, Err(CommitError::Overloaded));
    gate.let_through();
    assert_eq!(first.await, Ok(()));
    assert_eq!(join_all(queued).await, [Ok(()), Ok(())]);
    assert_eq!(store.payment(payment_id(4)).await.unwrap(), None);
    store.commit(create(&payment(1, 4))).await.unwrap();
}

#[tokio::test]
async fn closing_writes_what_waits_and_refuses_the_rest() {
    let gate = Gate::default();
    let store = gate.open(100);
    gate.shut();
    let mut first = store.commit(create(&payment(1, 1)));
    assert!(poll!(&mut first).is_pending());
    gate.somebody_waits().await;
    let mut second = store.commit(create(&payment(1, 2)));
    assert!(poll!(&mut second).is_pending());
    let mut closing = Box::pin(store.close());
    assert!(poll!(&mut closing).is_pending());
    gate.let_through();
    closing.await;
    assert_eq!((first.await, second.await), (Ok(()), Ok(())));
    assert_eq!(store.commit(create(&payment(1, 3))).await, Err(CommitError::Overloaded));
    assert!(matches!(store.payment(payment_id(1)).await, Err(ReadError::Failed(why)) if why == "it is closed"));
    store.close().await;
    assert_eq!(store.failure(), None);
}

#[tokio::test]
async fn a_store_that_commits_inline_closes_too() {
    let store = in_memory();
    store.commit(create(&payment(1, 1))).await.unwrap();
    store.close().await;
    assert_eq!(store.commit(create(&payment(1, 2))).await, Err(CommitError::Overloaded));
}

#[tokio::test]
async fn when_a_sync_fails_everybody_is_told_that_nobody_knows_and_nothing_is_written_any_more() {
    let gate = Gate::default();
    let store = gate.open(100);
    store.commit(create(&payment(1, 1))).await.unwrap();
    gate.shut();
    let mut first = store.commit(create(&payment(1, 2)));
    assert!(poll!(&mut first).is_pending());
    gate.somebody_waits().await;
    let mut waiting = Box::pin(join_all([3, 1].map(|number| store.commit(create(&payment(1, number))))));
    let mut failed = Box::pin(store.failed());
    assert!(poll!(&mut waiting).is_pending());
    assert!(poll!(&mut failed).is_pending());
    gate.break_down();
    let unknown = |outcome: &Result<(), CommitError>| matches!(outcome, Err(CommitError::Unknown(_)));
    assert!(unknown(&first.await));
    assert!(waiting.await.iter().all(unknown), "even what would have been refused: nobody knows");
    assert!(failed.await.contains("the disk failed"));
    assert_eq!(store.failed().await, store.failure().unwrap());
    assert!(unknown(&store.commit(create(&payment(1, 9))).await));
    store.close().await;
    assert!(unknown(&store.commit(create(&payment(1, 9))).await), "a failure is never taken for a refusal");
}

#[tokio::test]
async fn many_batches_at_once_end_as_if_they_had_come_one_by_one() {
    let data = tempfile::tempdir().unwrap();
    let store = open(data.path());
    let chain = |to: u32| Write::Cursor { cursor: cursor(to), expected: (to > 1).then(|| cursor(to - 1)) };
    // Every second batch builds on its predecessor, every third is a repeat.
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
async fn who_comes_alone_to_a_quick_disk_writes_in_the_thread_he_has() {
    let gate = Gate::default();
    let store = gate.open(100);
    // Whether the machine lets the one before be quick is its own affair.
    for number in 1..=10_000 {
        store.commit(create(&payment(1, number))).await.unwrap();
        if gate.last_thread() != "committer" {
            assert_eq!(store.payments(PaymentQuery::all(merchant_id(1), 1)).await.unwrap().total, number);
            return;
        }
    }
    panic!("the thread of its own wrote every one");
}

#[tokio::test]
async fn the_only_thread_of_a_runtime_is_never_held_up_by_a_sync() {
    let gate = Gate::default();
    let store = gate.open(100);
    for number in 1..=200 {
        store.commit(create(&payment(1, number))).await.unwrap();
        assert_eq!(gate.last_thread(), "committer");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writers_that_come_alone_and_in_company_leave_every_batch_once_and_each_in_its_order() {
    const WRITERS: u64 = 6;
    const EACH: u64 = 150;
    let data = tempfile::tempdir().unwrap();
    let store = std::sync::Arc::new(open(data.path()));
    let writers = (0..WRITERS).map(|writer| {
        let store = std::sync::Arc::clone(&store);
        tokio::spawn(async move {
            for number in (1..=EACH).map(|number| writer * EACH + number) {
                // Two at once, of which the second builds on the first: whoever writes them keeps the order.
                let opened = payment(1, number);
                let mut changed = opened.clone();
                changed.version += 1;
                let first = store.commit(create(&opened));
                let then = store.commit(replace(&changed, opened.version).and(Write::Event(event(1, number))));
                let outcomes = futures_util::future::join(first, then).await;
                assert_eq!(outcomes, (Ok(()), Ok(())));
                assert!(store.payment(payment_id(number)).await.unwrap().is_some(), "who was told may read it");
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    let events = store.events(merchant_id(1), 0, 1_000).await.unwrap();
    assert!(events.iter().map(|event| event.seq).eq(1..=WRITERS * EACH));
    let told: std::collections::BTreeSet<_> = events.iter().map(|event| event.payment).collect();
    assert_eq!(told, (1..=WRITERS * EACH).map(payment_id).collect());
}
