//! Copies of whole stores: reads a snapshot row by row, and writes rows to a new file, which is renamed to its final
//! name only when it is complete, verified and synced.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use engine::{event_list::Epoch, mutant};
use redb::{Database, Durability, ReadOnlyDatabase, ReadTransaction, ReadableDatabase};
use tokio::sync::mpsc;

use crate::{
    embedded::{
        damage::DamagedRows,
        fault::Fault,
        maintenance::{
            directory::{self, DirectoryLock, LOG_NAMES, UNFINISHED_NAME},
            sealing, verify,
        },
        tables::{self, Tables, meta},
        wal::{
            single,
            snapshot::{self, Snapshot},
        },
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

/// Size of a chunk of rows, bytes.
pub(crate) const CHUNK_BYTES: usize = 256 * 1024;
/// Maximum number of chunks that wait for the receiver.
pub(crate) const CHUNKS: usize = 4;
/// Maximum number of rows in one transaction of a new file.
const MAX_TRANSACTION_ROWS: usize = 20_000;
/// Page cache for a file that is read or written once, bytes.
const CACHE_BYTES: usize = 16 * 1024 * 1024;
/// The suffix of a store that was replaced by another.
const REPLACED: &str = "replaced";

/// The finding for a damaged page.
const CHECKSUMS: &str = "wrong page checksums";

/// One stored row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The table.
    pub table: String,
    /// The key, as stored.
    pub key: Vec<u8>,
    /// The value with its checksum, as stored. A damaged row keeps its wrong checksum, so that it stays detectable.
    pub value: Vec<u8>,
}

/// The rows of a snapshot in chunks. The last item is an error or the end of the stream.
pub type Rows = mpsc::Receiver<Result<Vec<Row>, ReadError>>;

/// Passes every row of a snapshot to `visit`.
pub(crate) fn each(snapshot: &Snapshot, visit: &mut impl FnMut(Row)) -> Result<(), Fault> {
    snapshot.each_row(&mut |table, key, value| {
        visit(Row { table: table.to_owned(), key: key.to_vec(), value: value.to_vec() });
        Ok(())
    })
}

/// Reads every row of a snapshot on a thread of its own, at the receiver's speed. Dropping the receiver stops the read.
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
            let dropped = |_| Fault::Disk("the receiver of the rows was dropped".to_owned());
            sender.blocking_send(Ok(std::mem::take(&mut waiting))).map_err(dropped)
        });
        let last = outcome.map(|()| waiting).map_err(ReadError::from);
        let _ = sender.blocking_send(last);
    };
    let spawned = std::thread::Builder::new().name("copier".to_owned()).spawn(read);
    spawned.map_err(|error| ReadError::Failed(error.to_string()))?;
    Ok(rows)
}

/// A store under construction. Dropped before [`NewStore::finish`], it deletes its file; if the process dies, the
/// unfinished file remains and the next attempt deletes it.
#[derive(Debug)]
pub struct NewStore {
    path: PathBuf,
    unfinished: PathBuf,
    database: Option<Database>,
    waiting: Vec<Row>,
}

impl NewStore {
    /// Begins a store whose file will be `path`.
    ///
    /// # Errors
    /// [`OpenError::Exists`] if the file exists; those of the file system.
    pub fn create(path: &Path) -> Result<Self, OpenError> {
        if path.try_exists().map_err(OpenError::io(path))? {
            return Err(OpenError::Exists(path.to_owned()));
        }
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".partial");
        Self::create_as(path, path.with_file_name(name))
    }

    pub(crate) fn create_as(path: &Path, unfinished: PathBuf) -> Result<Self, OpenError> {
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
    /// [`OpenError::Corrupt`] for an unknown table; those of the disk.
    pub fn put(&mut self, row: Row) -> Result<(), OpenError> {
        self.waiting.push(row);
        if self.waiting.len() >= MAX_TRANSACTION_ROWS { self.write(Durability::None) } else { Ok(()) }
    }

    fn write(&mut self, durability: Durability) -> Result<(), OpenError> {
        let database = self.database.as_ref().expect("it is taken by `finish` only");
        write_rows(database, self.waiting.drain(..), durability)
    }

    /// Marks the store as a copy of an earlier state: when it is opened, a new epoch begins.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn mark_as_copy(&mut self) -> Result<(), OpenError> {
        self.write(Durability::None)?;
        mark_as_copy(self.database.as_ref().expect("it is taken by `finish` only"))
    }

    /// Syncs the file, verifies it and renames it to its final name. With `must_be_sound`, findings are an error;
    /// without, they are only reported, because a copy of a damaged store is better than none.
    ///
    /// # Errors
    /// [`OpenError::Unsound`]; those of the disk. The file does not exist then.
    pub fn finish(mut self, must_be_sound: bool) -> Result<Report, OpenError> {
        let report = self.complete()?;
        if must_be_sound && !report.is_sound() {
            return Err(OpenError::Unsound(Box::new(report)));
        }
        self.install()?;
        Ok(report)
    }

    /// Syncs the file, which then has every row, and verifies it.
    pub(crate) fn complete(&mut self) -> Result<Report, OpenError> {
        self.write(Durability::Immediate)?;
        if let Some(mut database) = self.database.take() {
            // The file grows in steps: compaction removes the unused space of the last one.
            database.compact().map_err(Fault::from)?;
        }
        directory::sync_file(&self.unfinished)?;
        verify::file(&self.unfinished)
    }

    /// Renames a completed file to its final name.
    pub(crate) fn install(&self) -> Result<(), OpenError> {
        fs::rename(&self.unfinished, &self.path).map_err(OpenError::io(&self.path))?;
        directory::sync_parent(&self.path)
    }

    /// Passes a snapshot of a completed file to `work`.
    pub(crate) fn with_snapshot<T>(
        &self,
        work: impl FnOnce(&Snapshot) -> Result<T, OpenError>,
    ) -> Result<T, OpenError> {
        with_snapshot(&self.unfinished, work)
    }
}

impl Drop for NewStore {
    fn drop(&mut self) {
        drop(self.database.take());
        // After `finish` the file has another name.
        let _ = fs::remove_file(&self.unfinished);
    }
}

/// Writes rows to a store's database.
fn write_rows(database: &Database, rows: impl Iterator<Item = Row>, durability: Durability) -> Result<(), OpenError> {
    let mut transaction = tables::begin_write(database)?;
    transaction.set_durability(durability).map_err(Fault::from)?;
    let mut tables = Tables::of(&transaction);
    for row in rows {
        if mutant!("restore-omits-claims") && row.table == "claims" {
            continue;
        }
        if !tables.put_row(&row.table, &row.key, &row.value)? {
            return Err(OpenError::Corrupt(format!("unknown table {} or invalid key", row.table)));
        }
    }
    // A copy from an older version lacks the newer tables.
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

/// Writes the rows of a backup to an empty backend that is not a file, as `restore` writes them to a new file.
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

/// Passes every row of a closed store's file, such as a backup, to `take`.
///
/// # Errors
/// See [`OpenError`]; any error that `take` returns.
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
            Fault::Disk("a row was rejected".to_owned())
        })
    });
    match (refused, read) {
        (Some(error), _) => Err(error),
        (None, read) => Ok(read?),
    }
}

/// Passes a snapshot of a closed database to `work`. Damaged pages and rows are an error.
fn with_snapshot<T>(path: &Path, work: impl FnOnce(&Snapshot) -> Result<T, OpenError>) -> Result<T, OpenError> {
    directory::catch_panic(path, || {
        let mut database = directory::builder(CACHE_BYTES).open(path).map_err(OpenError::database(path))?;
        if !database.check_integrity().map_err(OpenError::database(path))? {
            return Err(OpenError::Corrupt(CHECKSUMS.to_owned()));
        }
        directory::check_schema(&database)?;
        let damages = DamagedRows::default();
        let transaction = database.begin_read().map_err(Fault::from)?;
        let done = work(&Snapshot::of(snapshot::Epoch::of(&transaction, &damages)?))?;
        match damages.count() {
            0 => Ok(done),
            rows => Err(OpenError::Corrupt(format!("{rows} rows are damaged: `hivetill verify` lists them"))),
        }
    })
}

/// Replays the log of a locked directory into the database, so that the database file is the whole store.
fn fold_log(data: &Path) -> Result<(), OpenError> {
    let path = data.join(FILE_NAME);
    directory::catch_panic(&path, || {
        let database = directory::builder(CACHE_BYTES).open(&path).map_err(OpenError::database(&path))?;
        Ok(directory::recover_log(data, 0, &database)?.clear()?)
    })
}

/// Reads every row of a locked directory; visit [`Idle::read`].
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

/// Rewrites the store of a locked directory, verifies the new file and replaces the old one. The new file contains no
/// freed pages.
pub(crate) fn rewrite(data: &Path) -> Result<(), OpenError> {
    let path = data.join(FILE_NAME);
    let mut copy = NewStore::create_as(&path, data.join(UNFINISHED_NAME))?;
    read(data, false, |row| copy.put(row))?;
    copy.finish(true)?;
    directory::chown_to_directory_owner(data, &path)?;
    // The log's entries are in the database; its file is removed as well.
    directory::remove_log(data)
}

/// A locked data directory: no engine can open it while this value lives.
#[derive(Debug)]
pub struct Idle {
    data: PathBuf,
    _lock: DirectoryLock,
}

impl Idle {
    /// Locks a data directory.
    ///
    /// # Errors
    /// [`OpenError::Locked`] if an engine is running; those of the file system.
    pub fn take(data: &Path) -> Result<Self, OpenError> {
        Ok(Self { data: data.to_owned(), _lock: DirectoryLock::take(data)? })
    }

    /// Locks a data directory that must contain a store.
    ///
    /// # Errors
    /// [`OpenError::Missing`] if there is no store; as [`Idle::take`].
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

    /// Opens database and log, and returns how many merchants have sealed webhook secrets. The vault must have the
    /// store's master key, if the store is sealed.
    ///
    /// # Errors
    /// [`OpenError::MasterKey`] if the key differs; visit [`OpenError`].
    pub fn secrets(&self, vault: &Vault) -> Result<Secrets, OpenError> {
        self.fold_log()?;
        let path = self.path();
        directory::catch_panic(&path, || {
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
    /// See [`OpenError`]. Findings in the data are in the report.
    pub fn verify(&self) -> Result<Report, OpenError> {
        self.fold_log()?;
        verify::file(&self.path())
    }

    /// Passes a snapshot of the store to `work`. Damaged pages and rows are an error.
    pub(crate) fn with_snapshot<T>(
        &self,
        work: impl FnOnce(&Snapshot) -> Result<T, OpenError>,
    ) -> Result<T, OpenError> {
        self.fold_log()?;
        with_snapshot(&self.path(), work)
    }

    /// Begins a new store in the directory, which must have none.
    ///
    /// # Errors
    /// [`OpenError::Exists`], [`OpenError::LogOnly`]; those of the disk.
    pub(crate) fn begin_store(&self) -> Result<NewStore, OpenError> {
        let path = self.path();
        if path.try_exists().map_err(OpenError::io(&path))? {
            return Err(OpenError::Exists(path));
        }
        directory::look_for_store(&self.data, true)?;
        NewStore::create_as(&path, self.data.join(UNFINISHED_NAME))
    }

    /// Gives a store that root created to the owner of its directory.
    pub(crate) fn give_to_owner(&self) -> Result<(), OpenError> {
        directory::chown_to_directory_owner(&self.data, &self.path())
    }

    /// Passes every row to `take`. Pages with wrong checksums are an error, because their rows would be copied with
    /// valid ones. With `salvage`, unreadable pages are skipped instead.
    ///
    /// # Errors
    /// See [`OpenError`]; any error that `take` returns.
    pub fn read(&self, salvage: bool, take: impl FnMut(Row) -> Result<(), OpenError>) -> Result<(), OpenError> {
        directory::catch_panic(&self.path(), || read(&self.data, salvage, take))
    }

    /// Rewrites the store without unused space, verifies the new file and replaces the old one. Returns the size before
    /// and after, bytes.
    ///
    /// # Errors
    /// See [`OpenError`]. The store is unchanged then.
    pub fn compact(&self) -> Result<(u64, u64), OpenError> {
        let path = self.path();
        let length = |path: &Path| fs::metadata(path).map(|file| file.len()).map_err(OpenError::io(path));
        let before = length(&path)?;
        directory::catch_panic(&path, || rewrite(&self.data))?;
        Ok((before, length(&path)?))
    }

    /// Verifies a copy of `backup` and moves it into place. An existing store is renamed, and its new path is returned;
    /// without `replace` it is an error.
    ///
    /// # Errors
    /// [`OpenError::Exists`] if there is a store and `replace` is false; visit [`OpenError`].
    pub fn restore(&self, backup: &Path, replace: bool) -> Result<(Report, Option<PathBuf>), OpenError> {
        let path = self.path();
        let is_there = path.try_exists().map_err(OpenError::io(&path))?;
        if is_there && !replace {
            return Err(OpenError::Exists(path));
        }
        // The copy is byte by byte, so that verification finds damaged pages.
        let copy = directory::catch_panic(backup, || {
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
            // A store that cannot be opened is kept unchanged together with its log.
            for log in LOG_NAMES.map(|name| self.data.join(name)).iter().filter(|log| log.exists()) {
                tracing::warn!(error, "write-ahead log of the replaced store kept as {}", log.display());
                directory::keep_as(log, REPLACED)?;
            }
        }
        let kept = if is_there { Some(directory::keep_as(&path, REPLACED)?) } else { None };
        directory::remove_log(&self.data)?;
        match copy.finish(true) {
            Ok(report) => {
                directory::chown_to_directory_owner(&self.data, &path)?;
                Ok((report, kept))
            }
            Err(error) => {
                // The store still has its original name, too.
                let _ = kept.map(fs::remove_file);
                Err(error)
            }
        }
    }
}
