//! Whole copies of a store: one snapshot read row by row, and a new file made of such rows, which gets its name only
//! when it is whole, sound and on disk.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use engine::{event_list::Epoch, mutant};
use redb::{Database, Durability, ReadOnlyDatabase, ReadTransaction, ReadableDatabase};
use tokio::sync::mpsc;

use crate::{
    embedded::{
        fault::Fault,
        maintenance::{
            directory::{self, DirectoryLock, LOG_NAMES, UNFINISHED_NAME},
            sealing, verify,
        },
        tables::{self, Tables, meta},
        wal::{single, snapshot::Snapshot},
    },
    record::{
        self,
        vault::{Secrets, Vault},
    },
    store::{
        error::{FILE_NAME, OpenError, ReadError},
        report::Report,
    },
};

/// Bytes of rows that are handed on at once.
const CHUNK_BYTES: usize = 256 * 1024;
/// Chunks that wait for who takes them.
const CHUNKS: usize = 4;
/// Rows that one transaction of a new file holds.
const ROWS_AT_ONCE: usize = 20_000;
/// Memory for pages of a file that is read or written through once.
const CACHE_BYTES: usize = 16 * 1024 * 1024;
/// What a store that gave way to another is called after.
const REPLACED: &str = "replaced";

/// What is wrong with a page that is not as it was written.
const CHECKSUMS: &str = "the checksums of its pages do not agree";

/// One row of a table, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The table.
    pub table: String,
    /// Its key, in the form of the database.
    pub key: Vec<u8>,
    /// Its value and its checksum, right or wrong: what was damaged stays known as such.
    pub value: Vec<u8>,
}

/// The rows of one snapshot, some at a time; the last item is an error or the end.
pub type Rows = mpsc::Receiver<Result<Vec<Row>, ReadError>>;

/// Shows every row of a snapshot.
pub(crate) fn each(snapshot: &Snapshot, see: &mut impl FnMut(Row)) -> Result<(), Fault> {
    snapshot.each_row(&mut |table, key, value| {
        see(Row { table: table.to_owned(), key: key.to_vec(), value: value.to_vec() });
        Ok(())
    })
}

/// Reads every row of a snapshot, on a thread of its own: whoever takes them may be slow. Who drops the receiver ends
/// the reading.
pub(crate) fn stream(snapshot: Snapshot) -> Result<Rows, ReadError> {
    let (sender, rows) = mpsc::channel(CHUNKS);
    let read = move || {
        let mut waiting = Vec::new();
        let mut bytes = 0;
        let outcome = snapshot.each_row(&mut |table, key, value| {
            bytes += key.len() + value.len();
            waiting.push(Row { table: table.to_owned(), key: key.to_vec(), value: value.to_vec() });
            if bytes < CHUNK_BYTES {
                return Ok(());
            }
            bytes = 0;
            let gone = |_| Fault::Disk("nobody takes the rows any more".to_owned());
            sender.blocking_send(Ok(std::mem::take(&mut waiting))).map_err(gone)
        });
        let last = outcome.map(|()| waiting).map_err(ReadError::from);
        let _ = sender.blocking_send(last);
    };
    let spawned = std::thread::Builder::new().name("copier".to_owned()).spawn(read);
    spawned.map_err(|error| ReadError::Failed(error.to_string()))?;
    Ok(rows)
}

/// A store under construction. Dropped before [`NewStore::finish`] it leaves nothing behind; a process that dies leaves
/// a file under another name, which the next attempt removes.
#[derive(Debug)]
pub struct NewStore {
    path: PathBuf,
    unfinished: PathBuf,
    database: Option<Database>,
    waiting: Vec<Row>,
}

impl NewStore {
    /// Begins a file that will be called `path`.
    ///
    /// # Errors
    /// [`OpenError::Exists`] where there is such a file; those of the file system.
    pub fn create(path: &Path) -> Result<Self, OpenError> {
        if path.try_exists().map_err(OpenError::io(path))? {
            return Err(OpenError::Exists(path.to_owned()));
        }
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".partial");
        Self::create_as(path, path.with_file_name(name))
    }

    fn create_as(path: &Path, unfinished: PathBuf) -> Result<Self, OpenError> {
        match fs::remove_file(&unfinished) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(OpenError::io(&unfinished)(error)),
            _ => {}
        }
        let database = directory::create_file(&unfinished, CACHE_BYTES)?;
        Ok(Self { path: path.to_owned(), unfinished, database: Some(database), waiting: Vec::new() })
    }

    fn copy_of(from: &Path, path: &Path, unfinished: PathBuf) -> Result<Self, OpenError> {
        let mut source = fs::File::open(from).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => OpenError::Missing(from.to_owned()),
            _ => OpenError::io(from)(error),
        })?;
        let mut copy = Self { path: path.to_owned(), unfinished, database: None, waiting: Vec::new() };
        directory::write_file(&copy.unfinished, &mut source)?;
        let mut database = directory::builder(CACHE_BYTES).open(&copy.unfinished).map_err(OpenError::database(from))?;
        if !database.check_integrity().map_err(OpenError::database(from))? {
            return Err(OpenError::Corrupt(CHECKSUMS.to_owned()));
        }
        directory::schema_of(&database.begin_read().map_err(Fault::from)?)?;
        copy.database = Some(database);
        Ok(copy)
    }

    /// Adds a row.
    ///
    /// # Errors
    /// [`OpenError::Corrupt`] for a table that this program does not know; those of the disk.
    pub fn put(&mut self, row: Row) -> Result<(), OpenError> {
        self.waiting.push(row);
        if self.waiting.len() >= ROWS_AT_ONCE { self.write(Durability::None) } else { Ok(()) }
    }

    fn write(&mut self, durability: Durability) -> Result<(), OpenError> {
        let database = self.database.as_ref().expect("it is taken only when the file is finished");
        write_rows(database, self.waiting.drain(..), durability)
    }

    /// Marks the file as the continuation of an older state: whoever opens it begins a new epoch.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn mark_as_copy(&mut self) -> Result<(), OpenError> {
        self.write(Durability::None)?;
        mark_as_copy(self.database.as_ref().expect("it is taken only when the file is finished"))
    }

    /// Ends the file: writes it to disk, verifies it, and gives it its name. What contradicts itself is kept all the same
    /// unless it `must_be_sound`: a copy of a damaged store is better than none.
    ///
    /// # Errors
    /// [`OpenError::Unsound`]; those of the disk. There is no file then.
    pub fn finish(mut self, must_be_sound: bool) -> Result<Report, OpenError> {
        self.write(Durability::Immediate)?;
        if let Some(mut database) = self.database.take() {
            // A file grows by leaps: what the last one left empty goes.
            database.compact().map_err(Fault::from)?;
        }
        directory::sync_file(&self.unfinished)?;
        let report = verify::file(&self.unfinished)?;
        if must_be_sound && !report.is_sound() {
            return Err(OpenError::Unsound(Box::new(report)));
        }
        fs::rename(&self.unfinished, &self.path).map_err(OpenError::io(&self.path))?;
        directory::sync_parent(&self.path)?;
        Ok(report)
    }
}

impl Drop for NewStore {
    fn drop(&mut self) {
        drop(self.database.take());
        // Finished, it has another name by now.
        let _ = fs::remove_file(&self.unfinished);
    }
}

/// Writes rows to a store's database.
fn write_rows(database: &Database, rows: impl Iterator<Item = Row>, durability: Durability) -> Result<(), OpenError> {
    let mut transaction = tables::begin_write(database)?;
    transaction.set_durability(durability).map_err(Fault::from)?;
    let mut tables = Tables::of(&transaction);
    for row in rows {
        if mutant!("restore-leaves-out-claims") && row.table == "claims" {
            continue;
        }
        if !tables.put_row(&row.table, &row.key, &row.value)? {
            return Err(OpenError::Corrupt(format!("there is no table {}, or no such key in it", row.table)));
        }
    }
    // An older copy lacks the tables that came since.
    tables.create_all().map_err(Fault::from)?;
    drop(tables);
    transaction.commit().map_err(Fault::from)?;
    Ok(())
}

fn mark_as_copy(database: &Database) -> Result<(), OpenError> {
    if mutant!("restore-keeps-the-epoch") {
        return Ok(());
    }
    let mut transaction = tables::begin_write(database)?;
    transaction.set_durability(Durability::None).map_err(Fault::from)?;
    let mut tables = Tables::of(&transaction);
    let names = tables.meta().map_err(Fault::from)?;
    let stored = single::stored(names, meta::EPOCHS)?.unwrap_or_default();
    let mut epochs = record::epochs_from_bytes(&stored).map_err(Fault::damaged(meta::TABLE, meta::EPOCHS))?;
    if epochs.last() != Some(&Epoch::PENDING) {
        epochs.push(Epoch::PENDING);
        single::store(names, meta::EPOCHS, &record::epochs_to_bytes(&epochs))?;
    }
    drop(tables);
    transaction.commit().map_err(Fault::from)?;
    Ok(())
}

/// Writes the rows of a backup to an empty disk that is no file, as `restore` writes them to a new file.
///
/// # Errors
/// As [`NewStore::put`].
pub fn restore_backend(disk: impl redb::StorageBackend, rows: Vec<Row>) -> Result<(), OpenError> {
    let database = directory::builder(CACHE_BYTES)
        .create_with_backend(disk)
        .map_err(|error| OpenError::Failed(error.to_string()))?;
    write_rows(&database, rows.into_iter(), Durability::None)?;
    mark_as_copy(&database)?;
    write_rows(&database, core::iter::empty(), Durability::Immediate)
}

/// Hands on every row of a store's file that nobody writes, such as a backup.
///
/// # Errors
/// See [`OpenError`]; whatever `take` says.
pub fn read_file(path: &Path, mut take: impl FnMut(Row) -> Result<(), OpenError>) -> Result<(), OpenError> {
    if !path.try_exists().map_err(OpenError::io(path))? {
        return Err(OpenError::Missing(path.to_owned()));
    }
    let database: ReadOnlyDatabase =
        directory::builder(CACHE_BYTES).open_read_only(path).map_err(OpenError::database(path))?;
    let snapshot = database.begin_read().map_err(Fault::from)?;
    directory::schema_of(&snapshot)?;
    all(&snapshot, &mut take)
}

fn all(snapshot: &ReadTransaction, take: &mut impl FnMut(Row) -> Result<(), OpenError>) -> Result<(), OpenError> {
    let mut refused = None;
    let read = tables::each_row(snapshot, &mut |table, key, value| {
        let row = Row { table: table.to_owned(), key: key.to_vec(), value: value.to_vec() };
        take(row).map_err(|error| {
            refused = Some(error);
            Fault::Disk("a row was refused".to_owned())
        })
    });
    match (refused, read) {
        (Some(error), _) => Err(error),
        (None, read) => Ok(read?),
    }
}

/// Puts what the log of a directory whose lock is held contains into the database, whose file is the whole store then.
fn fold_log(data: &Path) -> Result<(), OpenError> {
    let path = data.join(FILE_NAME);
    directory::guarded(&path, || {
        let database = directory::builder(CACHE_BYTES).open(&path).map_err(OpenError::database(&path))?;
        Ok(directory::recover_log(data, 0, &database)?.clear()?)
    })
}

/// Reads every row of a directory whose lock is held; see [`Idle::read`].
fn read(data: &Path, salvage: bool, mut take: impl FnMut(Row) -> Result<(), OpenError>) -> Result<(), OpenError> {
    let path = data.join(FILE_NAME);
    match fold_log(data) {
        Err(error) if !salvage => return Err(error),
        Err(error) => tracing::warn!(%error, "cannot read the write-ahead log"),
        Ok(()) => {}
    }
    let mut database = directory::builder(CACHE_BYTES).open(&path).map_err(OpenError::database(&path))?;
    if !salvage && !database.check_integrity().map_err(OpenError::database(&path))? {
        return Err(OpenError::Corrupt(CHECKSUMS.to_owned()));
    }
    let snapshot = database.begin_read().map_err(Fault::from)?;
    directory::schema_of(&snapshot)?;
    all(&snapshot, &mut take)
}

/// Writes the store of a directory whose lock is held anew, verifies that, and puts it in the old one's place: nothing
/// that was freed is in it.
pub(crate) fn rewrite(data: &Path) -> Result<(), OpenError> {
    let path = data.join(FILE_NAME);
    let mut copy = NewStore::create_as(&path, data.join(UNFINISHED_NAME))?;
    read(data, false, |row| copy.put(row))?;
    copy.finish(true)?;
    directory::give_to_owner(data, &path)?;
    // The log was folded in; what its file held goes, too.
    directory::remove_log(data)
}

/// A data directory that no engine has open, for as long as this lives.
#[derive(Debug)]
pub struct Idle {
    data: PathBuf,
    _lock: DirectoryLock,
}

impl Idle {
    /// Takes a data directory.
    ///
    /// # Errors
    /// [`OpenError::Locked`] where an engine runs; those of the file system.
    pub fn take(data: &Path) -> Result<Self, OpenError> {
        Ok(Self { data: data.to_owned(), _lock: DirectoryLock::take(data)? })
    }

    /// The same for a directory that must be there.
    ///
    /// # Errors
    /// [`OpenError::Missing`] where there is no store; as [`Idle::take`].
    pub fn take_store(data: &Path) -> Result<Self, OpenError> {
        let path = data.join(FILE_NAME);
        if !path.try_exists().map_err(OpenError::io(&path))? {
            return Err(OpenError::Missing(path));
        }
        Self::take(data)
    }

    fn path(&self) -> PathBuf {
        self.data.join(FILE_NAME)
    }

    fn fold_log(&self) -> Result<(), OpenError> {
        fold_log(&self.data)
    }

    /// Returns how the webhook secrets are kept, having opened database and log; the key of the vault must be the one
    /// that the store is sealed with, if it is.
    ///
    /// # Errors
    /// [`OpenError::MasterKey`] where the key is another; see [`OpenError`].
    pub fn secrets(&self, vault: &Vault) -> Result<Secrets, OpenError> {
        self.fold_log()?;
        let path = self.path();
        directory::guarded(&path, || {
            let database = directory::builder(CACHE_BYTES).open(&path).map_err(OpenError::database(&path))?;
            let snapshot = database.begin_read().map_err(Fault::from)?;
            directory::schema_of(&snapshot)?;
            vault.fits(&snapshot)?;
            Ok(sealing::count(&snapshot)?)
        })
    }

    /// Verifies the store.
    ///
    /// # Errors
    /// See [`OpenError`]; what is wrong inside stands in the report.
    pub fn verify(&self) -> Result<Report, OpenError> {
        self.fold_log()?;
        verify::file(&self.path())
    }

    /// Hands on every row. Pages whose checksums do not agree are refused, for their rows would get new ones, unless it
    /// is to `salvage` what can be read.
    ///
    /// # Errors
    /// See [`OpenError`]; whatever `take` says.
    pub fn read(&self, salvage: bool, take: impl FnMut(Row) -> Result<(), OpenError>) -> Result<(), OpenError> {
        directory::guarded(&self.path(), || read(&self.data, salvage, take))
    }

    /// Writes the store anew without the room that was freed, verifies that, and puts it in the old one's place.
    /// Returns how many bytes it was and is long.
    ///
    /// # Errors
    /// See [`OpenError`]; the store is as it was then.
    pub fn compact(&self) -> Result<(u64, u64), OpenError> {
        let path = self.path();
        let length = |path: &Path| fs::metadata(path).map(|file| file.len()).map_err(OpenError::io(path));
        let before = length(&path)?;
        directory::guarded(&path, || rewrite(&self.data))?;
        Ok((before, length(&path)?))
    }

    /// Puts a copy of `backup` where the store is, once it is verified. A store that is there is kept beside it under
    /// another name, which is returned; without `replace` it is left alone.
    ///
    /// # Errors
    /// [`OpenError::Exists`] where there is a store and it is not to be replaced; see [`OpenError`].
    pub fn restore(&self, backup: &Path, replace: bool) -> Result<(Report, Option<PathBuf>), OpenError> {
        let path = self.path();
        let is_there = path.try_exists().map_err(OpenError::io(&path))?;
        if is_there && !replace {
            return Err(OpenError::Exists(path));
        }
        // Byte for byte: whatever is wrong with a page is still wrong with it, and is found.
        let copy = directory::guarded(backup, || {
            let mut copy = NewStore::copy_of(backup, &path, self.data.join(UNFINISHED_NAME))?;
            copy.mark_as_copy()?;
            Ok(copy)
        })?;
        let unfolded = if is_there {
            self.fold_log().err().map(|error| error.to_string())
        } else {
            Some("it has no database".to_owned())
        };
        if let Some(error) = unfolded {
            // A store that cannot be opened is kept as it is, and its log with it.
            for log in LOG_NAMES.map(|name| self.data.join(name)).iter().filter(|log| log.exists()) {
                tracing::warn!(error, "write-ahead log of the replaced store kept as {}", log.display());
                directory::keep_beside(log, REPLACED)?;
            }
        }
        let kept = if is_there { Some(directory::keep_beside(&path, REPLACED)?) } else { None };
        directory::remove_log(&self.data)?;
        match copy.finish(true) {
            Ok(report) => {
                directory::give_to_owner(&self.data, &path)?;
                Ok((report, kept))
            }
            Err(error) => {
                // The store still has its own name.
                let _ = kept.map(fs::remove_file);
                Err(error)
            }
        }
    }
}
