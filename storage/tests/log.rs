//! Tests of the write-ahead log: its content after a kill, its end, and entries that do not belong to it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use engine::webhook::Outcome;
use futures_util::future::{Either, select};
use storage::{
    Batch, CommitError, CommitMode, EmbeddedStore, FILE_NAME, Idle, NewStore, OpenError, Options, PaymentQuery, Write,
    prelude::*,
};

use crate::{disk::Gate, raw, samples::*};

/// Returns the segment that is written first.
fn log(data: &Path) -> PathBuf {
    logs(data)[0].clone()
}

fn logs(data: &Path) -> [PathBuf; 2] {
    ["hivetill.wal", "hivetill.wal2"].map(|name| data.join(name))
}

/// Copies the files of an open, idle store, as a kill leaves them.
fn after_a_kill(data: &Path) -> tempfile::TempDir {
    let left = tempfile::tempdir().unwrap();
    for file in [data.join(FILE_NAME)].iter().chain(&logs(data)) {
        fs::copy(file, left.path().join(file.file_name().unwrap())).unwrap();
    }
    left
}

/// Creates payments with events, and delivers every second event: rows are inserted, changed and deleted.
async fn fill(store: &EmbeddedStore, numbers: std::ops::RangeInclusive<u64>) {
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

async fn payments_in(store: &EmbeddedStore) -> u64 {
    store.payments(PaymentQuery::all(merchant_id(1), 100)).await.unwrap().total
}

/// Opens a copy, verifies it and returns its number of payments.
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
async fn commits_that_are_only_in_the_log_survive_a_kill() {
    let data = tempfile::tempdir().unwrap();
    let store = open(data.path());
    let database_before = fs::read(data.path().join(FILE_NAME)).unwrap();
    fill(&store, 1..=8).await;
    let left = after_a_kill(data.path());
    assert!(
        fs::read(left.path().join(FILE_NAME)).unwrap() == database_before,
        "the database is unchanged before a checkpoint"
    );
    let reopened = open(left.path());
    assert_eq!(payments_in(&reopened).await, 8);
    assert_eq!(reopened.due_deliveries(at(9_000), 100).await.unwrap().len(), 4);
    // The store is not closed: opening it replayed the log into the database.
    let again = after_a_kill(left.path());
    assert_eq!(payments_left(again.path()).await, 8);
}

/// Size of an entry's header, bytes. Its second four bytes are the length of the changes.
const HEAD_LEN: usize = 32;

/// Returns the end of the last entry.
fn used(bytes: &[u8]) -> usize {
    let mut end = 0;
    loop {
        let length = u32::from_be_bytes(*bytes[end + 4..].first_chunk().unwrap()) as usize;
        if length == 0 {
            return end;
        }
        end += HEAD_LEN + length;
    }
}

#[tokio::test]
async fn a_log_ends_at_an_incomplete_entry() {
    let data = tempfile::tempdir().unwrap();
    let store = open(data.path());
    fill(&store, 1..=2).await;
    let whole = fs::metadata(log(data.path())).unwrap().len();
    let before_third = used(&fs::read(log(data.path())).unwrap());
    fill(&store, 3..=3).await;
    let bytes = fs::read(log(data.path())).unwrap();
    assert_eq!(bytes.len() as u64, whole, "three payments fit in the initial segment");
    let end = used(&bytes);
    for damaged in (before_third..end).step_by(37).chain([end - 1]) {
        let left = after_a_kill(data.path());
        let mut bytes = bytes.clone();
        bytes[damaged] ^= 0x40;
        fs::write(log(left.path()), &bytes).unwrap();
        assert_eq!(payments_left(left.path()).await, 2, "byte {damaged} was changed");
    }
    for length in [0, 1, before_third - 1, before_third, before_third + HEAD_LEN + 1, end - 1] {
        let left = after_a_kill(data.path());
        fs::write(log(left.path()), &bytes[..length]).unwrap();
        let expected = if length < HEAD_LEN { 0 } else { 2 };
        assert!(payments_left(left.path()).await <= expected, "the log is truncated to {length} bytes");
    }
}

/// Returns the number of payments after emptying the segments with these indices; none if the store does not open,
/// because the other segment has later entries.
async fn payments_without(data: &Path, files: &[usize]) -> Option<u64> {
    let left = after_a_kill(data);
    for file in files {
        fs::write(&logs(left.path())[*file], b"").unwrap();
    }
    match refusal(left.path()) {
        Some(_) => None,
        None => Some(payments_left(left.path()).await),
    }
}

/// Returns why a copy does not open.
fn refusal(left: &Path) -> Option<OpenError> {
    EmbeddedStore::open(left, INLINE).err()
}

#[tokio::test]
async fn an_unreadable_entry_before_readable_ones_is_an_error() {
    let data = tempfile::tempdir().unwrap();
    let store = open(data.path());
    let end_of_log = || used(&fs::read(log(data.path())).unwrap());
    fill(&store, 1..=2).await;
    let begin = end_of_log();
    fill(&store, 3..=3).await;
    let end = end_of_log();
    fill(&store, 4..=6).await;
    let bytes = fs::read(log(data.path())).unwrap();
    let corrupt = |places: std::ops::Range<usize>, by: &dyn Fn(u8) -> u8| {
        let left = after_a_kill(data.path());
        let mut bytes = bytes.clone();
        bytes[places].iter_mut().for_each(|byte| *byte = by(*byte));
        fs::write(log(left.path()), &bytes).unwrap();
        left
    };
    let heads_and_more = (begin..begin + HEAD_LEN).chain((begin + HEAD_LEN..end).step_by(41)).map(|at| at..at + 1);
    // One byte, several in a row, and a block that the disk has lost.
    for places in heads_and_more.chain([begin - 5..begin + 30, begin..end, 0..end]) {
        for by in [&(|byte: u8| byte ^ 1) as &dyn Fn(u8) -> u8, &|_| 0] {
            let left = corrupt(places.clone(), by);
            if fs::read(log(left.path())).unwrap() == bytes {
                continue;
            }
            let refused = refusal(left.path());
            assert!(
                matches!(&refused, Some(OpenError::Corrupt(why)) if why.contains("later entries exist")),
                "bytes {places:?}: {refused:?}"
            );
            // A second attempt fails, too: the first one must not remove entries.
            assert!(refusal(left.path()).is_some());
        }
    }
    assert_eq!(payments_left(corrupt(end..bytes.len(), &|_| 0).path()).await, 3, "the last entry may be incomplete");
}

#[tokio::test]
async fn a_log_without_a_start_in_the_database_is_rejected() {
    let data = tempfile::tempdir().unwrap();
    let store = open(data.path());
    fill(&store, 1..=2).await;
    for (begin, expected) in [(None, "LSN of the log's start"), (Some([7_u8; 16]), "24 bytes")] {
        let left = after_a_kill(data.path());
        let begin = begin.as_ref().map(<[u8; 16]>::as_slice);
        raw::set_single(&left.path().join(FILE_NAME), "log", begin);
        let refused = refusal(left.path());
        assert!(matches!(&refused, Some(OpenError::Corrupt(why)) if why.contains(expected)), "{refused:?}");
    }
}

#[tokio::test]
async fn a_full_segment_is_checkpointed_and_segments_rotate() {
    let data = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(data.path(), Options { log_bytes: 16 * 1024, ..INLINE }).unwrap();
    let mut of_earlier_rounds = Vec::new();
    let mut needs = [false; 4];
    for number in 1..=60 {
        fill(&store, number..=number).await;
        assert_eq!(payments_left(after_a_kill(data.path()).path()).await, number);
        let [first, second] = [payments_without(data.path(), &[0]).await, payments_without(data.path(), &[1]).await];
        needs[usize::from(first < Some(number)) + 2 * usize::from(second < Some(number))] = true;
        if number == 20 {
            of_earlier_rounds = logs(data.path()).map(|file| fs::read(file).unwrap()).to_vec();
        }
    }
    assert_eq!(needs[1..], [true; 3], "each segment alone, and at times both, held rows that the database lacked");
    let lengths = logs(data.path()).map(|file| fs::metadata(file).unwrap().len());
    assert_eq!(lengths, [64 * 1024; 2], "segments keep their initial size");
    let count = metric(&store, "checkpoint_seconds_count");
    assert!(count >= 3, "{count} checkpoints");
    // Entries of an earlier round are ignored, however intact they are.
    let left = after_a_kill(data.path());
    for (file, bytes) in logs(left.path()).iter().zip(of_earlier_rounds) {
        fs::write(file, bytes).unwrap();
    }
    assert_eq!(Some(payments_left(left.path()).await), payments_without(data.path(), &[0, 1]).await);
}

/// A log that holds hundreds of payments.
const LARGE_LOG: Options = Options { log_bytes: 256 * 1024, mode: CommitMode::Thread { queue: 100 }, ..INLINE };

/// Commits payments until a sync is blocked; returns the number of payments.
async fn create_until_a_sync_is_blocked(gate: &Gate, store: &EmbeddedStore) -> u64 {
    for number in 1..10_000 {
        store.commit(create(&payment(1, number))).await.unwrap();
        if gate.has_blocked_sync() {
            return number;
        }
    }
    panic!("no sync was blocked");
}

#[tokio::test]
async fn commits_continue_during_a_checkpoint_until_the_segment_limit() {
    let (disk, log) = (Gate::default(), Gate::default());
    let store = disk.open_before(&log, LARGE_LOG);
    disk.block();
    let begun_at = create_until_a_sync_is_blocked(&disk, &store).await;
    // The checkpoint is blocked, and commits continue.
    let mut count = begun_at + 20;
    for number in begun_at + 1..=count {
        store.commit(create(&payment(1, number))).await.unwrap();
    }
    assert_eq!(payments_in(&store).await, count);
    let stalled = async {
        while metric(&store, "write_stalls_total") == 0 {
            tokio::task::yield_now().await;
        }
    };
    let mut stalled = Box::pin(stalled);
    let waiting = loop {
        assert!(count < 10_000, "commits never waited for the checkpoint");
        count += 1;
        match select(store.commit(create(&payment(1, count))), &mut stalled).await {
            Either::Left((outcome, _)) => outcome.unwrap(),
            Either::Right(((), waiting)) => break waiting,
        }
    };
    disk.unblock();
    waiting.await.unwrap();
    assert_eq!(payments_in(&store).await, count);
    store.close().await;
    assert_eq!(store.failure(), None);
}

#[tokio::test]
async fn a_failed_checkpoint_is_reported_at_once() {
    let (disk, log) = (Gate::default(), Gate::default());
    let store = disk.open_before(&log, LARGE_LOG);
    disk.block();
    create_until_a_sync_is_blocked(&disk, &store).await;
    disk.fail_syncs();
    assert!(store.failed().await.contains("the disk failed"));
    let outcome = store.commit(create(&payment(1, 9_999))).await;
    assert!(matches!(outcome, Err(CommitError::Unknown(_))), "{outcome:?}");
}

#[tokio::test]
async fn a_closed_store_is_complete_without_its_log() {
    let data = tempfile::tempdir().unwrap();
    let store = open(data.path());
    fill(&store, 1..=3).await;
    store.close().await;
    drop(store);
    for log in logs(data.path()) {
        assert_eq!(fs::metadata(&log).unwrap().len(), 0);
        fs::remove_file(log).unwrap();
    }
    assert_eq!(payments_left(data.path()).await, 3);
}

#[tokio::test]
async fn a_log_without_a_database_is_kept_and_no_store_is_created() {
    let data = tempfile::tempdir().unwrap();
    let store = open(data.path());
    fill(&store, 1..=3).await;
    let left = after_a_kill(data.path());
    let database = left.path().join(FILE_NAME);
    let whole = fs::read(&database).unwrap();
    fs::remove_file(&database).unwrap();
    let refused = refusal(left.path());
    assert!(matches!(refused, Some(OpenError::LogOnly(_))), "{refused:?}");
    assert!(!database.exists());
    fs::write(&database, whole).unwrap();
    assert_eq!(payments_left(left.path()).await, 3, "with its database it is complete");
}

#[tokio::test]
async fn a_store_is_created_only_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let existing = Options { may_create: false, ..INLINE };
    let refused = EmbeddedStore::open(&data, existing).err();
    assert!(matches!(&refused, Some(OpenError::NotMade(path)) if path.starts_with(&data)), "{refused:?}");
    assert!(!data.exists(), "nothing is created");
    drop(EmbeddedStore::open(&data, INLINE).unwrap());
    assert!(EmbeddedStore::open(&data, existing).is_ok());
}

#[tokio::test]
async fn reads_of_a_killed_store_include_its_log() {
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
async fn a_restored_backup_does_not_replay_the_log_of_the_replaced_store() {
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
    // The replaced store is complete: its log was replayed into it first.
    let kept = kept.unwrap();
    Idle::take_store(left.path()).unwrap().restore(&kept, true).unwrap();
    assert_eq!(payments_left(left.path()).await, 4);
}
