//! Migration from older schema versions: on a copy, which replaces the store once it is complete and verified. The old
//! store remains next to it for the older program.

use std::{fs, io, path::Path};

use redb::{Database, ReadableDatabase, WriteTransaction};

use crate::{
    embedded::{
        fault::Fault,
        maintenance::{directory, verify},
        tables::{META, SCHEMA_VERSION, begin_write, meta},
        wal::{log, single},
    },
    store::error::{FILE_NAME, OpenError},
};

/// Migrates the tables from one version to the next, in one transaction.
pub(crate) type Step = fn(&WriteTransaction) -> Result<(), Fault>;

/// The steps from version 1 on, each to the next version.
pub(crate) const STEPS: [Step; SCHEMA_VERSION as usize - 1] = [];

/// The name of the copy until it is complete.
const COPY_NAME: &str = "hivetill.redb.migrating";
/// Page cache for the copy, bytes.
const CACHE_BYTES: usize = 64 * 1024 * 1024;

/// Returns whether a store has an older schema version.
pub(crate) fn is_due(database: &Database) -> Result<bool, OpenError> {
    let snapshot = database.begin_read().map_err(Fault::from)?;
    Ok(directory::schema_of(&snapshot)? < SCHEMA_VERSION)
}

/// Migrates the closed store of a locked directory. If the process is killed, the directory has either the old or the
/// new store.
///
/// # Errors
/// See [`OpenError`]. The store is unchanged then.
pub(crate) fn migrate(data: &Path, steps: &[Step]) -> Result<(), OpenError> {
    let (path, copy) = (data.join(FILE_NAME), data.join(COPY_NAME));
    let from = copy_and_change(&path, &copy, steps);
    let from = from.inspect_err(|_| {
        // The next attempt creates it again.
        let _ = fs::remove_file(&copy);
    })?;
    let kept = directory::keep_as(&path, &format!("schema-{from}"))?;
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
    let begin = from.checked_sub(1).ok_or_else(|| OpenError::Corrupt("schema 0 does not exist".to_owned()))?;
    for (step, to) in steps.iter().zip(2_u32..).skip(begin as usize) {
        let transaction = begin_write(&database)?;
        step(&transaction)?;
        let mut names = transaction.open_table(META).map_err(Fault::from)?;
        single::store(&mut names, meta::SCHEMA, &to.to_be_bytes())?;
        drop(names);
        // The older program must not replay entries that the newer one logs.
        log::separate(&transaction, format!("schema {to}").as_bytes())?;
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
mod tests;
