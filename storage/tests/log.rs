//! The log in front of the database: what it holds after a kill, what ends it, and what is none of its business.

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

/// The file of the log that is written first.
fn log(data: &Path) -> PathBuf {
    logs(data)[0].clone()
}

fn logs(data: &Path) -> [PathBuf; 2] {
    ["hivetill.wal", "hivetill.wal2"].map(|name| data.join(name))
}

/// Copies the files of a store that is open and at rest: what a kill leaves.
fn after_a_kill(data: &Path) -> tempfile::TempDir {
    let left = tempfile::tempdir().unwrap();
    for file in [data.join(FILE_NAME)].iter().chain(&logs(data)) {
        fs::copy(file, left.path().join(file.file_name().unwrap())).unwrap();
    }
    left
}

/// Creates payments, announces them, and tells the webhook of every second one: rows come, change and go.
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

/// Bytes of an entry before its changes; the second four say how many those are.
const HEAD_LEN: usize = 32;

/// Returns where the last entry ends.
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
async fn a_log_ends_where_an_entry_is_not_whole() {
    let data = tempfile::tempdir().unwrap();
    let store = open(data.path());
    fill(&store, 1..=2).await;
    let whole = fs::metadata(log(data.path())).unwrap().len();
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
    for length in [0, 1, before_third - 1, before_third, before_third + HEAD_LEN + 1, end - 1] {
        let left = after_a_kill(data.path());
        fs::write(log(left.path()), &bytes[..length]).unwrap();
        let expected = if length < HEAD_LEN { 0 } else { 2 };
        assert!(payments_left(left.path()).await <= expected, "the log is cut after {length} bytes");
    }
}

/// Returns how many payments are left when the files of the log with these indices are emptied; none where nobody opens
/// that, because later commits stand in the other.
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

/// Says why what is left is not opened.
fn refusal(left: &Path) -> Option<OpenError> {
    EmbeddedStore::open(left, INLINE).err()
}

#[tokio::test]
async fn a_commit_that_cannot_be_read_is_told_where_later_ones_can() {
    let data = tempfile::tempdir().unwrap();
    let store = open(data.path());
    let end_of_log = || used(&fs::read(log(data.path())).unwrap());
    fill(&store, 1..=2).await;
    let begin = end_of_log();
    fill(&store, 3..=3).await;
    let end = end_of_log();
    fill(&store, 4..=6).await;
    let bytes = fs::read(log(data.path())).unwrap();
    let spoil = |places: std::ops::Range<usize>, by: &dyn Fn(u8) -> u8| {
        let left = after_a_kill(data.path());
        let mut bytes = bytes.clone();
        bytes[places].iter_mut().for_each(|byte| *byte = by(*byte));
        fs::write(log(left.path()), &bytes).unwrap();
        left
    };
    let heads_and_more = (begin..begin + HEAD_LEN).chain((begin + HEAD_LEN..end).step_by(41)).map(|at| at..at + 1);
    // A byte, some in a row, and a block that the disk has lost.
    for places in heads_and_more.chain([begin - 5..begin + 30, begin..end, 0..end]) {
        for by in [&(|byte: u8| byte ^ 1) as &dyn Fn(u8) -> u8, &|_| 0] {
            let left = spoil(places.clone(), by);
            if fs::read(log(left.path())).unwrap() == bytes {
                continue;
            }
            let refused = refusal(left.path());
            assert!(
                matches!(&refused, Some(OpenError::Corrupt(why)) if why.contains("later ones are there")),
                "bytes {places:?}: {refused:?}"
            );
            // And again: nobody has made room for new ones meanwhile.
            assert!(refusal(left.path()).is_some());
        }
    }
    assert_eq!(payments_left(spoil(end..bytes.len(), &|_| 0).path()).await, 3, "what ends there may be torn");
}

#[tokio::test]
async fn a_log_whose_beginning_the_database_does_not_know_is_refused() {
    let data = tempfile::tempdir().unwrap();
    let store = open(data.path());
    fill(&store, 1..=2).await;
    for (begin, expected) in [(None, "where the log begins"), (Some([7_u8; 16]), "24 bytes")] {
        let left = after_a_kill(data.path());
        let begin = begin.as_ref().map(<[u8; 16]>::as_slice);
        raw::set_single(&left.path().join(FILE_NAME), "log", begin);
        let refused = refusal(left.path());
        assert!(matches!(&refused, Some(OpenError::Corrupt(why)) if why.contains(expected)), "{refused:?}");
    }
}

#[tokio::test]
async fn a_full_log_gives_way_to_the_database_and_its_files_take_turns() {
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
    assert_eq!(
        needs[1..],
        [true; 3],
        "now the first file, now the second, and at times both held what was nowhere else"
    );
    let lengths = logs(data.path()).map(|file| fs::metadata(file).unwrap().len());
    assert_eq!(lengths, [64 * 1024; 2], "they never grew beyond their first piece");
    let count = told(&store, "checkpoint_seconds_count");
    assert!(count >= 3, "{count} checkpoints were told of");
    // What an earlier round wrote is no part of this one, however whole it is.
    let left = after_a_kill(data.path());
    for (file, bytes) in logs(left.path()).iter().zip(of_earlier_rounds) {
        fs::write(file, bytes).unwrap();
    }
    assert_eq!(Some(payments_left(left.path()).await), payments_without(data.path(), &[0, 1]).await);
}

/// A log that takes hundreds of payments until it is full.
const BESIDE: Options = Options { log_bytes: 256 * 1024, mode: CommitMode::Thread { queue: 100 }, ..INLINE };

/// Commits payments until a sync is held up; returns how many.
async fn create_until_somebody_waits_at(gate: &Gate, store: &EmbeddedStore) -> u64 {
    for number in 1..10_000 {
        store.commit(create(&payment(1, number))).await.unwrap();
        if gate.has_somebody() {
            return number;
        }
    }
    panic!("no sync was held up");
}

#[tokio::test]
async fn commits_go_on_beside_a_checkpoint_until_memory_would_fill_with_them() {
    let (disk, log) = (Gate::default(), Gate::default());
    let store = disk.open_before(&log, BESIDE);
    disk.shut();
    let begun_at = create_until_somebody_waits_at(&disk, &store).await;
    // The checkpoint is held up, and nobody notices.
    let mut count = begun_at + 20;
    for number in begun_at + 1..=count {
        store.commit(create(&payment(1, number))).await.unwrap();
    }
    assert_eq!(payments_in(&store).await, count);
    let held_up = async {
        while told(&store, "checkpoint_holds_total") == 0 {
            tokio::task::yield_now().await;
        }
    };
    let mut held_up = Box::pin(held_up);
    let waiting = loop {
        assert!(count < 10_000, "commits are never held up");
        count += 1;
        match select(store.commit(create(&payment(1, count))), &mut held_up).await {
            Either::Left((outcome, _)) => outcome.unwrap(),
            Either::Right(((), waiting)) => break waiting,
        }
    };
    disk.let_through();
    waiting.await.unwrap();
    assert_eq!(payments_in(&store).await, count);
    store.close().await;
    assert_eq!(store.failure(), None);
}

#[tokio::test]
async fn a_checkpoint_that_fails_is_told_at_once() {
    let (disk, log) = (Gate::default(), Gate::default());
    let store = disk.open_before(&log, BESIDE);
    disk.shut();
    create_until_somebody_waits_at(&disk, &store).await;
    disk.break_down();
    assert!(store.failed().await.contains("the disk failed"));
    let outcome = store.commit(create(&payment(1, 9_999))).await;
    assert!(matches!(outcome, Err(CommitError::Unknown(_))), "{outcome:?}");
}

#[tokio::test]
async fn a_closed_store_is_whole_without_its_log() {
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
async fn a_log_whose_database_is_gone_is_kept_and_no_store_is_made_beside_it() {
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
    assert_eq!(payments_left(left.path()).await, 3, "put back, it has everything");
}

#[tokio::test]
async fn a_store_is_made_only_where_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let existing = Options { may_create: false, ..INLINE };
    let refused = EmbeddedStore::open(&data, existing).err();
    assert!(matches!(&refused, Some(OpenError::NotMade(path)) if path.starts_with(&data)), "{refused:?}");
    assert!(!data.exists(), "nothing is made");
    drop(EmbeddedStore::open(&data, INLINE).unwrap());
    assert!(EmbeddedStore::open(&data, existing).is_ok());
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
