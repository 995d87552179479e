//! Tests of event lists across restores, and of the retention of events.

use engine::event_list::{Epoch, Tail};
use storage::{Batch, CommitError, EmbeddedStore, EventRecord, Idle, NewStore, Write, prelude::*};

use crate::samples::*;

#[tokio::test]
async fn an_event_is_pruned_by_its_own_age_and_not_by_that_of_its_payment() {
    let store = in_memory();
    let late = EventRecord { at: at(900), ..event(1, 100) };
    store.commit(Batch::of(Write::Event(late)).and(Write::Event(event(1, 200)))).await.unwrap();
    store.commit(Batch::of(Write::Prune { happened_before: at(500) })).await.unwrap();
    let left = store.events(merchant_id(1), 0, 9).await.unwrap();
    assert_eq!(left.iter().map(|event| event.id).collect::<Vec<_>>(), [event(1, 100).id]);
    assert_eq!(store.oldest_event().await.unwrap(), Some(at(900)));
}

#[tokio::test]
async fn an_epoch_begins_only_after_a_restore_and_once() {
    let store = in_memory();
    assert_eq!(store.epoch().await.unwrap(), Epoch::FIRST);
    assert_refused(store.commit(Batch::of(Write::BeginEpoch(Epoch::random(7)))).await);
    let folder = tempfile::tempdir().unwrap();
    store.commit(Batch::of(Write::Event(event(1, 5)))).await.unwrap();
    let mut lives = Vec::new();
    for life in 1..4 {
        let backup = folder.path().join(format!("backup {life}"));
        let mut copy = NewStore::create(&backup).unwrap();
        let mut rows = lives.last().unwrap_or(&store).rows().unwrap();
        while let Some(rows) = rows.recv().await {
            rows.unwrap().into_iter().try_for_each(|row| copy.put(row)).unwrap();
        }
        copy.mark_as_copy().unwrap();
        assert!(copy.finish(true).unwrap().is_sound());
        let data = folder.path().join(format!("data {life}"));
        Idle::take(&data).unwrap().restore(&backup, false).unwrap();
        let restored = EmbeddedStore::open(&data, INLINE).unwrap();
        assert_eq!(restored.epoch().await.unwrap(), Epoch::PENDING);
        let begin = Batch::of(Write::BeginEpoch(Epoch::random(life)));
        restored.commit(begin.clone()).await.unwrap();
        assert_refused(restored.commit(begin).await);
        let list = restored.event_list(merchant_id(1)).await.unwrap();
        assert_eq!(list.epochs, (1..=life).map(Epoch::random).collect::<Vec<_>>());
        assert_eq!((list.tail.last, list.tail.last_before_epoch), (life, life - 1));
        restored.commit(Batch::of(Write::Event(event(1, 5 + life)))).await.unwrap();
        let list = restored.event_list(merchant_id(1)).await.unwrap();
        assert_eq!(list.tail, Tail { last: life + 1, epoch: Epoch::random(life), last_before_epoch: life });
        lives.push(restored);
    }
}

#[track_caller]
fn assert_refused(result: Result<(), CommitError>) {
    assert!(matches!(&result, Err(CommitError::Conflict { what }) if what == "the epoch"), "{result:?}");
}
