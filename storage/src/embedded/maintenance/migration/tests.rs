//! Tests of schema migrations.

use super::*;
use crate::{
    CommitMode, EmbeddedStore, Options,
    embedded::{
        maintenance::directory::DirectoryLock,
        tables::{DEADLINES, Tables, set_row},
    },
    record::checked::Seed,
};

fn data() -> tempfile::TempDir {
    let data = tempfile::tempdir().unwrap();
    drop(EmbeddedStore::open(data.path(), options()).unwrap());
    data
}

fn options() -> Options {
    Options { cache_bytes: 1 << 20, mode: CommitMode::Inline, ..Options::default() }
}

fn note(transaction: &WriteTransaction) -> Result<(), Fault> {
    single::store(Tables::of(transaction).meta()?, "note from a step", b"done")
}

fn corrupt(transaction: &WriteTransaction) -> Result<(), Fault> {
    let key = <(u64, u128) as redb::Value>::as_bytes(&(1, 1));
    set_row(&mut transaction.open_table(DEADLINES)?, Seed::of("deadlines"), key.as_ref(), Some(&[]))
}

fn fail(transaction: &WriteTransaction) -> Result<(), Fault> {
    note(transaction)?;
    Err(Fault::Disk("a step failed".to_owned()))
}

fn names(data: &Path) -> Vec<String> {
    let entries = fs::read_dir(data).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_migrated_store_replaces_the_old_one_which_is_kept() {
    let data = data();
    let path = data.path().join(FILE_NAME);
    let _lock = DirectoryLock::take(data.path()).unwrap();
    let before = fs::read(&path).unwrap();
    migrate(data.path(), &[note]).unwrap();
    assert_eq!(
        names(data.path()),
        ["hivetill.lock", "hivetill.redb", "hivetill.redb.schema-1", "hivetill.wal", "hivetill.wal2"]
    );
    assert_eq!(fs::read(data.path().join("hivetill.redb.schema-1")).unwrap(), before);
    let database = directory::builder(0).open(&path).unwrap();
    let names = database.begin_read().unwrap().open_table(META).unwrap();
    assert_eq!(single::stored(&names, meta::SCHEMA).unwrap().unwrap(), 2_u32.to_be_bytes());
    assert_eq!(single::stored(&names, "note from a step").unwrap().unwrap(), b"done");
    drop((names, database));
    // This version does not support schema 2, as if a newer version had migrated the store.
    drop(_lock);
    let refusal = EmbeddedStore::open(data.path(), options()).map(|_| ()).unwrap_err();
    assert!(matches!(refusal, OpenError::SchemaNewer { found: 2, known: SCHEMA_VERSION }), "{refusal}");
}

#[test]
fn a_step_that_fails_or_corrupts_an_index_leaves_the_store_unchanged() {
    for (steps, is_unsound) in [([note as Step, fail], false), ([note, corrupt], true)] {
        let data = data();
        let path = data.path().join(FILE_NAME);
        let _lock = DirectoryLock::take(data.path()).unwrap();
        let before = fs::read(&path).unwrap();
        let refusal = migrate(data.path(), &steps).unwrap_err();
        assert_eq!(matches!(refusal, OpenError::Unsound(_)), is_unsound, "{refusal}");
        assert_eq!(fs::read(&path).unwrap(), before);
        assert_eq!(names(data.path()), ["hivetill.lock", "hivetill.redb", "hivetill.wal", "hivetill.wal2"]);
    }
}
