//! Tests of opening a store: permissions, locks, existing files, and error texts.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use redb::{Database, TableDefinition};
use storage::{CommitError, EmbeddedStore, FILE_NAME, OpenError, Options, PaymentQuery, ReadError, prelude::*};

use crate::{raw, samples::*};

fn refusal(data: &Path) -> OpenError {
    EmbeddedStore::open(data, Options::default()).expect_err("it must not open")
}

fn file(data: &Path) -> PathBuf {
    data.join(FILE_NAME)
}

async fn with_one_payment(data: &Path) {
    let store = open(data);
    store.commit(create(&payment(1, 1))).await.unwrap();
    store.close().await;
}

#[cfg(unix)]
#[tokio::test]
async fn the_directory_is_accessible_to_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let parent = tempfile::tempdir().unwrap();
    let data = parent.path().join("deep").join("data");
    with_one_payment(&data).await;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&data), 0o700);
    for entry in fs::read_dir(&data).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
}

#[cfg(unix)]
#[tokio::test]
async fn files_created_by_root_belong_to_the_owner_of_the_directory() {
    use std::os::unix::fs::{MetadataExt, chown};
    const SERVICE: u32 = 65_534;
    let data = tempfile::tempdir().unwrap();
    let folder = tempfile::tempdir().unwrap();
    // Only root can change owners; as another user the test has nothing to check.
    if chown(data.path(), Some(SERVICE), Some(SERVICE)).is_err() {
        return;
    }
    let owners = || {
        let files = fs::read_dir(data.path()).unwrap().map(|file| file.unwrap());
        files.map(|file| (file.file_name(), file.metadata().unwrap().uid())).collect::<Vec<_>>()
    };
    with_one_payment(data.path()).await;
    assert!(owners().len() >= 4 && owners().iter().all(|(_, uid)| *uid == SERVICE), "{:?}", owners());
    let backup = folder.path().join("backup");
    let mut copy = storage::NewStore::create(&backup).unwrap();
    let idle = storage::Idle::take_store(data.path()).unwrap();
    idle.read(false, |row| copy.put(row)).unwrap();
    let report = copy.finish(false).unwrap();
    assert_eq!(report.findings.len(), 1, "the merchant is missing: {report:?}");
    drop(idle);
    // A restore rejects a backup with findings; that of an empty store has none.
    drop(EmbeddedStore::open(&folder.path().join("empty"), Options::default()).unwrap());
    let idle = storage::Idle::take(data.path()).unwrap();
    idle.restore(&folder.path().join("empty").join(FILE_NAME), true).unwrap();
    idle.compact().unwrap();
    assert!(owners().iter().all(|(_, uid)| *uid == SERVICE), "{:?}", owners());
}

#[tokio::test]
async fn stored_data_survives_reopening() {
    let data = tempfile::tempdir().unwrap();
    with_one_payment(data.path()).await;
    assert_eq!(open(data.path()).payment(payment_id(1)).await.unwrap(), Some(payment(1, 1)));
}

#[tokio::test]
async fn a_directory_is_locked_by_one_process() {
    let data = tempfile::tempdir().unwrap();
    let store = open(data.path());
    let error = refusal(data.path());
    assert!(matches!(&error, OpenError::Locked(path) if path == data.path()), "{error}");
    assert!(error.to_string().ends_with("is in use by another process"), "{error}");
    drop(store);
    open(data.path());
}

/// Environment variable with the directory that the other process opens.
const OTHER_PROCESS: &str = "STORAGE_TEST_DATA";

#[test]
fn another_process_is_rejected() {
    #[expect(clippy::disallowed_methods, reason = "input of the other process of this test")]
    if let Ok(data) = std::env::var(OTHER_PROCESS) {
        assert!(matches!(refusal(Path::new(&data)), OpenError::Locked(_)));
        return;
    }
    let data = tempfile::tempdir().unwrap();
    let other = || {
        let program = std::env::current_exe().unwrap();
        let arguments = ["--exact", "opening::another_process_is_rejected"];
        Command::new(program).args(arguments).env(OTHER_PROCESS, data.path()).output().unwrap().status.success()
    };
    let store = open(data.path());
    assert!(other(), "the other process is rejected while this one holds the lock");
    drop(store);
    assert!(!other(), "the lock is released");
}

/// Creates payments until it is killed, and prints each one that is stored.
#[expect(clippy::print_stdout, reason = "output of the other process of this test")]
async fn create_until_killed(data: &Path) {
    let store = open(data);
    for number in 1.. {
        store.commit(create(&payment(1, number))).await.unwrap();
        println!("stored {number}");
    }
}

#[tokio::test]
async fn a_killed_process_loses_no_acknowledged_commit() {
    #[expect(clippy::disallowed_methods, reason = "input of the other process of this test")]
    if let Ok(data) = std::env::var(OTHER_PROCESS) {
        return create_until_killed(Path::new(&data)).await;
    }
    let data = tempfile::tempdir().unwrap();
    let mut stored = 0;
    for round in 1..=3usize {
        let program = std::env::current_exe().unwrap();
        let arguments = ["--exact", "--nocapture", "opening::a_killed_process_loses_no_acknowledged_commit"];
        let data = data.path().join(round.to_string());
        let mut child =
            Command::new(program).args(arguments).env(OTHER_PROCESS, &data).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let mut acknowledged =
            lines.filter_map(|line| line.strip_prefix("stored ").and_then(|n| n.parse::<u64>().ok()));
        let mut last = acknowledged.nth(50 * round).unwrap();
        child.kill().unwrap();
        last = acknowledged.last().unwrap_or(last);
        child.wait().unwrap();
        let store = open(&data);
        let page = store.payments(PaymentQuery::all(merchant_id(1), 1)).await.unwrap();
        assert!((last..=last + 1).contains(&page.total), "{last} were acknowledged, {} are stored", page.total);
        assert_eq!(store.payment(payment_id(last)).await.unwrap(), Some(payment(1, last)));
        stored += page.total;
    }
    assert!(stored > 300);
}

#[tokio::test]
async fn an_interrupted_creation_is_repeated() {
    let data = tempfile::tempdir().unwrap();
    let unfinished = data.path().join(format!("{FILE_NAME}.tmp"));
    fs::write(&unfinished, [0; 5_000]).unwrap();
    with_one_payment(data.path()).await;
    assert!(!unfinished.exists());
    // A complete database under its temporary name: nothing in it was acknowledged.
    fs::rename(file(data.path()), &unfinished).unwrap();
    // The log is created after the database is renamed.
    for log in ["hivetill.wal", "hivetill.wal2"] {
        fs::remove_file(data.path().join(log)).unwrap();
    }
    assert_eq!(open(data.path()).payment(payment_id(1)).await.unwrap(), None);
    with_one_payment(data.path()).await;
    // Next to a complete store it is removed.
    fs::write(&unfinished, b"rubbish").unwrap();
    assert_eq!(open(data.path()).payment(payment_id(1)).await.unwrap(), Some(payment(1, 1)));
    assert!(!unfinished.exists());
}

#[test]
fn a_file_that_is_not_a_database_is_not_changed() {
    for content in [&b"not a database, but long enough to be looked at"[..], &[0; 4_096], &[]] {
        let data = tempfile::tempdir().unwrap();
        fs::write(file(data.path()), content).unwrap();
        let error = refusal(data.path());
        assert!(matches!(error, OpenError::Corrupt(_)), "{error:?}");
        assert_eq!(fs::read(file(data.path())).unwrap(), content);
    }
}

#[tokio::test]
async fn a_truncated_database_is_corrupt() {
    let data = tempfile::tempdir().unwrap();
    with_one_payment(data.path()).await;
    let whole = fs::read(file(data.path())).unwrap();
    fs::write(file(data.path()), &whole[..whole.len() / 2]).unwrap();
    let error = refusal(data.path());
    assert!(matches!(error, OpenError::Corrupt(_)), "{error:?}");
}

#[test]
fn a_database_of_another_program_is_rejected() {
    let data = tempfile::tempdir().unwrap();
    drop(Database::create(file(data.path())).unwrap());
    assert!(matches!(refusal(data.path()), OpenError::Foreign));
}

const IN_FLIGHT: TableDefinition<'_, u128, ()> = TableDefinition::new("in_flight");

#[tokio::test]
async fn a_store_of_a_newer_version_is_rejected() {
    let data = tempfile::tempdir().unwrap();
    with_one_payment(data.path()).await;
    raw::set_single(&file(data.path()), "schema", Some(&7u32.to_be_bytes()));
    let error = refusal(data.path());
    assert!(matches!(error, OpenError::SchemaNewer { found: 7, known: 1 }), "{error:?}");
    assert_eq!(error.to_string(), "the store has schema 7, and this version knows 1: use a newer version");
}

#[tokio::test]
async fn a_new_table_is_added_to_an_older_store() {
    let data = tempfile::tempdir().unwrap();
    with_one_payment(data.path()).await;
    let database = Database::open(file(data.path())).unwrap();
    let transaction = database.begin_write().unwrap();
    assert!(transaction.delete_table(IN_FLIGHT).unwrap());
    transaction.commit().unwrap();
    drop(database);
    let store = open(data.path());
    assert_eq!(store.in_flight().await.unwrap(), []);
    assert_eq!(store.payment(payment_id(1)).await.unwrap(), Some(payment(1, 1)));
}

#[tokio::test]
async fn a_damaged_record_is_reported_and_does_not_affect_other_records() {
    let data = tempfile::tempdir().unwrap();
    with_one_payment(data.path()).await;
    raw::set_payment(&file(data.path()), payment_id(1).bits(), &[9, 9]);
    let store = open(data.path());
    let read = store.payment(payment_id(1)).await;
    let Err(ReadError::Damaged { table, key, why }) = read else { panic!("{read:?}") };
    assert_eq!((table, key), ("payments", payment_id(1).to_string()));
    assert_eq!(why, "record version 9 is not supported, expected 1");
    let next = engine::payment::Payment { version: 2, ..payment(1, 1) };
    let refused = store.commit(replace(&next, 1)).await;
    assert!(matches!(&refused, Err(CommitError::Conflict { what }) if what.contains("damaged")), "{refused:?}");
    store.commit(create(&payment(1, 2))).await.unwrap();
    assert_eq!(store.index_search(at(3_600), 9).await, Ok(2), "the indexer skips it");
}

#[cfg(unix)]
#[test]
fn an_unwritable_directory_is_named_in_the_error() {
    use std::os::unix::fs::PermissionsExt;
    let parent = tempfile::tempdir().unwrap();
    fs::set_permissions(parent.path(), fs::Permissions::from_mode(0o500)).unwrap();
    let data = parent.path().join("data");
    match EmbeddedStore::open(&data, Options::default()) {
        Err(error) => assert!(matches!(&error, OpenError::Permission(path) if *path == data), "{error:?}"),
        // Root can write everywhere: the test has nothing to check.
        Ok(_) => assert!(fs::write(parent.path().join("x"), "").is_ok()),
    }
    fs::set_permissions(parent.path(), fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn a_path_that_cannot_be_a_directory_is_named_in_the_error() {
    let parent = tempfile::tempdir().unwrap();
    let data = parent.path().join("file");
    fs::write(&data, "").unwrap();
    let error = refusal(&data);
    assert!(matches!(&error, OpenError::Io { path, .. } if *path == data), "{error:?}");
}
