//! The log in front of the database: what it holds after a kill, what ends it, and what is none of its business.

use std::{
    fs,
    path::{Path, PathBuf},
};

use engine::webhook::Outcome;
use storage::{Batch, FILE_NAME, Idle, NewStore, Options, PaymentQuery, RedbStore, Store, Write};

use crate::samples::*;

fn log(data: &Path) -> PathBuf {
    data.join("hivetill.wal")
}

/// Copies the files of a store that is open and at rest: what a kill leaves.
fn after_a_kill(data: &Path) -> tempfile::TempDir {
    let left = tempfile::tempdir().unwrap();
    for file in [data.join(FILE_NAME), log(data)] {
        fs::copy(&file, left.path().join(file.file_name().unwrap())).unwrap();
    }
    left
}

/// Creates payments, announces them, and tells the webhook of every second one: rows come, change and go.
async fn fill(store: &RedbStore, numbers: std::ops::RangeInclusive<u64>) {
    if *numbers.start() == 1 {
        store.commit(register(&merchant(1))).await.unwrap();
    }
    for number in numbers {
        store.commit(create(&payment(1, number)).and(Write::Event(event(1, number)))).await.unwrap();
        if number % 2 == 0 {
            let delivery = store.due_deliveries(at(9_000), 1).await.unwrap().pop().unwrap();
            let attempt =
                engine::webhook::Attempt { outcome: Outcome::Accepted { status: 200 }, ..attempt(&delivery, None) };
            store.commit(Batch::of(Write::Attempt { delivery, attempt })).await.unwrap();
        }
    }
}

async fn payments_in(store: &RedbStore) -> u64 {
    store.payments(PaymentQuery::all(merchant_id(1), 100)).await.unwrap().total
}

/// Opens what is left and says how many payments it holds, once it is verified.
async fn payments_left(left: &Path) -> u64 {
    let store = open(left);
    let count = payments_in(&store).await;
    store.close().await;
    drop(store);
    let report = Idle::take_store(left).unwrap().verify().unwrap();
    assert!(report.is_sound(), "{:?}", report.findings);
    count
}

#[tokio::test]
async fn what_only_the_log_holds_is_there_after_a_kill() {
    let data = tempfile::tempdir().unwrap();
    let store = open(data.path());
    let database_before = fs::read(data.path().join(FILE_NAME)).unwrap();
    fill(&store, 1..=8).await;
    let left = after_a_kill(data.path());
    assert!(fs::read(left.path().join(FILE_NAME)).unwrap() == database_before, "nothing is in the database yet");
    let reopened = open(left.path());
    assert_eq!(payments_in(&reopened).await, 8);
    assert_eq!(reopened.due_deliveries(at(9_000), 100).await.unwrap().len(), 4);
    // Nobody closes it: what came from the log is in the database at once.
    let again = after_a_kill(left.path());
    assert_eq!(payments_left(again.path()).await, 8);
}

#[tokio::test]
async fn a_log_ends_where_an_entry_is_not_whole() {
    let data = tempfile::tempdir().unwrap();
    let store = open(data.path());
    fill(&store, 1..=2).await;
    let whole = fs::metadata(log(data.path())).unwrap().len();
    let used = |bytes: &[u8]| bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    let before_third = used(&fs::read(log(data.path())).unwrap());
    fill(&store, 3..=3).await;
    let bytes = fs::read(log(data.path())).unwrap();
    assert_eq!(bytes.len() as u64, whole, "three payments need no longer file");
    let end = used(&bytes);
    for spoiled in (before_third..end).step_by(37).chain([end - 1]) {
        let left = after_a_kill(data.path());
        let mut bytes = bytes.clone();
        bytes[spoiled] ^= 0x40;
        fs::write(log(left.path()), &bytes).unwrap();
        assert_eq!(payments_left(left.path()).await, 2, "byte {spoiled} is not as it was written");
    }
    for length in [0, 1, before_third - 1, before_third, before_third + 21, end - 1] {
        let left = after_a_kill(data.path());
        fs::write(log(left.path()), &bytes[..length]).unwrap();
        let expected = if length < 20 { 0 } else { 2 };
        assert!(payments_left(left.path()).await <= expected, "the log is cut after {length} bytes");
    }
}

#[tokio::test]
async fn a_full_log_gives_way_to_the_database_and_begins_anew() {
    let data = tempfile::tempdir().unwrap();
    let store = RedbStore::open(data.path(), Options { log_bytes: 16 * 1024, ..INLINE }).unwrap();
    let mut of_the_first_round = Vec::new();
    for number in 1..=60 {
        fill(&store, number..=number).await;
        if number == 3 {
            of_the_first_round = fs::read(log(data.path())).unwrap();
        }
        if number % 7 == 0 {
            let left = after_a_kill(data.path());
            assert_eq!(payments_left(left.path()).await, number);
        }
    }
    assert_eq!(fs::metadata(log(data.path())).unwrap().len(), 64 * 1024, "it never grew beyond its first piece");
    let mut registry = prometheus_client::registry::Registry::default();
    store.commit_metrics().register(&mut registry);
    let mut told = String::new();
    prometheus_client::encoding::text::encode(&mut told, &registry).unwrap();
    let count = told.lines().find_map(|line| line.strip_prefix("checkpoint_seconds_count ")).unwrap();
    assert!(count.parse::<u32>().unwrap() >= 3, "{count} checkpoints were told of");
    // What an earlier round wrote is no part of this one, however whole it is.
    let left = after_a_kill(data.path());
    let checkpointed = {
        fs::write(log(left.path()), b"").unwrap();
        payments_left(left.path()).await
    };
    let left = after_a_kill(data.path());
    fs::write(log(left.path()), of_the_first_round).unwrap();
    assert_eq!(payments_left(left.path()).await, checkpointed);
}

#[tokio::test]
async fn a_closed_store_is_whole_without_its_log() {
    let data = tempfile::tempdir().unwrap();
    let store = open(data.path());
    fill(&store, 1..=3).await;
    store.close().await;
    drop(store);
    assert_eq!(fs::metadata(log(data.path())).unwrap().len(), 0);
    fs::remove_file(log(data.path())).unwrap();
    assert_eq!(payments_left(data.path()).await, 3);
}

#[tokio::test]
async fn a_log_whose_database_is_gone_belongs_to_nothing() {
    let data = tempfile::tempdir().unwrap();
    let store = open(data.path());
    fill(&store, 1..=3).await;
    let left = after_a_kill(data.path());
    fs::remove_file(left.path().join(FILE_NAME)).unwrap();
    assert_eq!(payments_left(left.path()).await, 0);
}

#[tokio::test]
async fn whoever_reads_the_store_of_a_killed_engine_reads_its_log_too() {
    let data = tempfile::tempdir().unwrap();
    let store = open(data.path());
    fill(&store, 1..=5).await;
    let payments_read = |left: &Path| {
        let mut payments = 0;
        let count = |row: storage::Row| {
            payments += u64::from(row.table == "payments");
            Ok(())
        };
        Idle::take_store(left).unwrap().read(false, count).unwrap();
        payments
    };
    assert_eq!(payments_read(after_a_kill(data.path()).path()), 5);
    let verified = Idle::take_store(after_a_kill(data.path()).path()).unwrap().verify().unwrap();
    assert_eq!(verified.tables.iter().find(|(table, _)| *table == "payments"), Some(&("payments", 5)));
    let left = after_a_kill(data.path());
    Idle::take_store(left.path()).unwrap().compact().unwrap();
    assert_eq!(payments_left(left.path()).await, 5);
}

#[tokio::test]
async fn a_backup_put_in_the_place_of_a_killed_store_meets_no_log_of_that() {
    let data = tempfile::tempdir().unwrap();
    let store = open(data.path());
    fill(&store, 1..=2).await;
    let backup = data.path().join("backup");
    let mut copy = NewStore::create(&backup).unwrap();
    let mut rows = store.rows().unwrap();
    while let Some(rows) = rows.recv().await {
        rows.unwrap().into_iter().for_each(|row| copy.put(row).unwrap());
    }
    copy.finish(true).unwrap();
    fill(&store, 3..=4).await;
    let left = after_a_kill(data.path());
    let (_, kept) = Idle::take_store(left.path()).unwrap().restore(&backup, true).unwrap();
    assert_eq!(payments_left(left.path()).await, 2);
    // And what was replaced is whole: the log went into it first.
    let kept = kept.unwrap();
    Idle::take_store(left.path()).unwrap().restore(&kept, true).unwrap();
    assert_eq!(payments_left(left.path()).await, 4);
}
