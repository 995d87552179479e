//! From an older version of the tables to this program's: on a copy, which takes the store's place only when it is
//! whole and sound. The older store stays beside it, for the older program.

use std::{fs, io, path::Path};

use redb::{Database, ReadableDatabase, WriteTransaction};

use crate::embedded::{
    fault::Fault,
    maintenance::{
        directory::{self, FILE_NAME, OpenError},
        verify,
    },
    tables::{META, SCHEMA_VERSION, begin_write, meta},
    wal::{log, single},
};

/// Brings the tables from one version to the next, in one transaction.
pub(crate) type Step = fn(&WriteTransaction) -> Result<(), Fault>;

/// The steps from version 1 on, each to the version after it.
pub(crate) const STEPS: [Step; SCHEMA_VERSION as usize - 1] = [];

/// What the copy is called until it is whole.
const COPY_NAME: &str = "hivetill.redb.migrating";
/// Memory for pages of the copy.
const CACHE_BYTES: usize = 64 * 1024 * 1024;

/// Says whether a store is of an older version.
pub(crate) fn is_due(database: &Database) -> Result<bool, OpenError> {
    let snapshot = database.begin_read().map_err(Fault::from)?;
    Ok(directory::schema_of(&snapshot)? < SCHEMA_VERSION)
}

/// Migrates the store of a directory whose lock is held, and which is not open. Killed at any moment it leaves the store
/// as it was, or as it is to be.
///
/// # Errors
/// See [`OpenError`]; the store is as it was then.
pub(crate) fn migrate(data: &Path, steps: &[Step]) -> Result<(), OpenError> {
    let (path, copy) = (data.join(FILE_NAME), data.join(COPY_NAME));
    let from = copy_and_change(&path, &copy, steps);
    let from = from.inspect_err(|_| {
        // It is made anew by the next attempt anyway.
        let _ = fs::remove_file(&copy);
    })?;
    let kept = directory::keep_beside(&path, &format!("schema-{from}"))?;
    fs::rename(&copy, &path).map_err(OpenError::io(&path))?;
    directory::sync_parent(&path)?;
    let to = steps.len() + 1;
    tracing::warn!("store migrated from schema {from} to {to}; the previous one is kept as {}", kept.display());
    Ok(())
}

fn copy_and_change(path: &Path, copy: &Path, steps: &[Step]) -> Result<u32, OpenError> {
    match fs::remove_file(copy) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(OpenError::io(copy)(error)),
        _ => {}
    }
    fs::copy(path, copy).map_err(OpenError::io(copy))?;
    let database = directory::builder(CACHE_BYTES).open(copy).map_err(OpenError::database(copy))?;
    let snapshot = database.begin_read().map_err(Fault::from)?;
    let from = directory::schema_of(&snapshot)?;
    drop(snapshot);
    let begin = from.checked_sub(1).ok_or_else(|| OpenError::Corrupt("there never was a schema 0".to_owned()))?;
    for (step, to) in steps.iter().zip(2_u32..).skip(begin as usize) {
        let transaction = begin_write(&database)?;
        step(&transaction)?;
        let mut names = transaction.open_table(META).map_err(Fault::from)?;
        single::store(&mut names, meta::SCHEMA, &to.to_be_bytes())?;
        drop(names);
        // Who goes back to the older store must not meet what the newer one logged.
        log::part_ways(&transaction, format!("schema {to}").as_bytes())?;
        transaction.commit().map_err(Fault::from)?;
    }
    drop(database);
    directory::sync_file(copy)?;
    let report = verify::unversioned(copy)?;
    if !report.is_sound() {
        return Err(OpenError::Unsound(Box::new(report)));
    }
    Ok(from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        CommitMode, Options, RedbStore,
        embedded::{
            maintenance::directory::DirectoryLock,
            tables::{DEADLINES, Tables, set_row},
        },
        record::checked::Seed,
    };

    fn data() -> tempfile::TempDir {
        let data = tempfile::tempdir().unwrap();
        drop(RedbStore::open(data.path(), options()).unwrap());
        data
    }

    fn options() -> Options {
        Options { cache_bytes: 1 << 20, mode: CommitMode::Inline, ..Options::default() }
    }

    fn note(transaction: &WriteTransaction) -> Result<(), Fault> {
        single::store(Tables::of(transaction).meta()?, "note from a step", b"done")
    }

    fn spoil(transaction: &WriteTransaction) -> Result<(), Fault> {
        let key = <(u64, u128) as redb::Value>::as_bytes(&(1, 1));
        set_row(&mut transaction.open_table(DEADLINES)?, Seed::of("deadlines"), key.as_ref(), Some(&[]))
    }

    fn fail(transaction: &WriteTransaction) -> Result<(), Fault> {
        note(transaction)?;
        Err(Fault::Disk("a step failed".to_owned()))
    }

    fn names(data: &Path) -> Vec<String> {
        let entries = fs::read_dir(data).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_migrated_store_takes_the_place_of_the_older_one_which_is_kept() {
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
        // This program knows no version 2: as if a newer one had migrated.
        drop(_lock);
        let refusal = RedbStore::open(data.path(), options()).map(|_| ()).unwrap_err();
        assert!(matches!(refusal, OpenError::SchemaNewer { found: 2, known: SCHEMA_VERSION }), "{refusal}");
    }

    #[test]
    fn a_step_that_fails_or_spoils_an_index_leaves_the_store_as_it_was() {
        for (steps, is_unsound) in [([note as Step, fail], false), ([note, spoil], true)] {
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
}
