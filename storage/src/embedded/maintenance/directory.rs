//! The data directory: locking, file permissions, and crash-safe creation.
//!
//! If the power fails while redb creates a file, the file can never be opened again. Therefore a file is created under
//! a temporary name, synced, and renamed. A backend has no names: a finished store is copied into it, the magic number
//! last.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::Arc,
};

use redb::{
    BackendError, Builder, Database, DatabaseError, ReadTransaction, ReadableDatabase, StorageBackend, StorageError,
    TableError,
    backends::{FileBackend, InMemoryBackend},
};

use crate::{
    embedded::{
        fault::{Fault, is_full},
        tables::{META, SCHEMA_VERSION, Tables, begin_write, meta},
        wal::{entry::Lsn, log::Log, single},
    },
    store::error::{FILE_NAME, OpenError},
};

/// The name of the database file during its creation.
pub(crate) const UNFINISHED_NAME: &str = "hivetill.redb.tmp";
/// The two segments of the write-ahead log in the directory.
pub(crate) const LOG_NAMES: [&str; 2] = ["hivetill.wal", "hivetill.wal2"];
/// The lock file of the process that uses the directory.
const LOCK_NAME: &str = "hivetill.lock";

/// Runs work on a store's file. redb may panic on a damaged page; the panic is returned as an error.
///
/// # Errors
/// Those of the work; [`OpenError::Corrupt`] if it panics.
pub(crate) fn catch_panic<T>(path: &Path, work: impl FnOnce() -> Result<T, OpenError>) -> Result<T, OpenError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let message =
            panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
        let message = message.unwrap_or("it cannot be read");
        Err(OpenError::Corrupt(format!("a page of {} is damaged: {message}", path.display())))
    })
}

impl OpenError {
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |error| match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Self::Permission(path.to_owned()),
            kind if is_full(kind) => Self::Full(path.to_owned()),
            _ => Self::Io { path: path.to_owned(), error },
        }
    }

    pub(crate) fn database(path: &Path) -> impl FnOnce(DatabaseError) -> Self {
        move |error| match error {
            DatabaseError::DatabaseAlreadyOpen => Self::Locked(path.to_owned()),
            DatabaseError::UpgradeRequired(format) => Self::Corrupt(format!("file format {format} is too old")),
            DatabaseError::Storage(StorageError::Corrupted(why)) => Self::Corrupt(why),
            // redb returns this error for a file without its magic number.
            DatabaseError::Storage(StorageError::Io(error)) if error.kind() == io::ErrorKind::InvalidData => {
                Self::Corrupt(error.to_string())
            }
            DatabaseError::Storage(StorageError::Io(error)) => Self::io(path)(error),
            other => Self::Failed(other.to_string()),
        }
    }
}

/// An exclusive lock on a data directory, held until it is dropped.
#[derive(Debug)]
pub(crate) struct DirectoryLock {
    file: File,
}

impl DirectoryLock {
    /// Locks the directory, and creates it if it does not exist.
    pub(crate) fn take(data: &Path) -> Result<Self, OpenError> {
        create_directory(data).map_err(OpenError::io(data))?;
        let path = data.join(LOCK_NAME);
        let file = private_file().create(true).truncate(false).open(&path).map_err(OpenError::io(&path))?;
        match file.try_lock() {
            Ok(()) => {
                chown_to_directory_owner(data, &path)?;
                Ok(Self { file })
            }
            Err(TryLockError::WouldBlock) => Err(OpenError::Locked(data.to_owned())),
            Err(TryLockError::Error(error)) => Err(OpenError::io(&path)(error)),
        }
    }
}

/// A forked process shares the open file until it calls exec, so closing the file would not release the lock.
impl Drop for DirectoryLock {
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

/// Rejects a directory without a store unless one may be created, and a directory that has a log but no database: the
/// log contains acknowledged writes.
///
/// # Errors
/// [`OpenError::NotMade`], [`OpenError::LogOnly`]; those of the file system.
pub fn look_for_store(data: &Path, may_create: bool) -> Result<(), OpenError> {
    let path = data.join(FILE_NAME);
    if path.try_exists().map_err(OpenError::io(data))? {
        return Ok(());
    }
    if LOG_NAMES.iter().any(|name| data.join(name).exists()) {
        return Err(OpenError::LogOnly(data.to_owned()));
    }
    if may_create { Ok(()) } else { Err(OpenError::NotMade(path)) }
}

/// Opens the database of a locked directory, or creates it.
pub(crate) fn open_or_create(data: &Path, cache_bytes: usize) -> Result<Database, OpenError> {
    let path = data.join(FILE_NAME);
    let unfinished = data.join(UNFINISHED_NAME);
    match fs::remove_file(&unfinished) {
        Ok(()) => tracing::warn!("removed a database whose creation was interrupted"),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(OpenError::io(&unfinished)(error)),
    }
    if !path.try_exists().map_err(OpenError::io(&path))? {
        look_for_store(data, true)?;
        let database = create_file(&unfinished, cache_bytes)?;
        create_schema(&database)?;
        drop(database);
        let whole = private_file().open(&unfinished).and_then(|file| file.sync_all());
        chown_to_directory_owner(data, &unfinished)?;
        whole.and_then(|()| fs::rename(&unfinished, &path)).map_err(OpenError::io(&unfinished))?;
        if cfg!(unix) {
            // The rename is durable once the directory is synced.
            sync_directory(data).map_err(OpenError::io(data))?;
        }
    }
    builder(cache_bytes).open(&path).map_err(OpenError::database(&path))
}

/// Opens the log of a locked directory, or creates it, and replays it into the database.
pub(crate) fn recover_log(data: &Path, limit: u64, database: &Database) -> Result<Log, OpenError> {
    let [first, second] = LOG_NAMES.map(|name| -> Result<Box<dyn StorageBackend>, OpenError> {
        let path = data.join(name);
        let is_new = !path.try_exists().map_err(OpenError::io(&path))?;
        let file = private_file().create(true).truncate(false).open(&path).map_err(OpenError::io(&path))?;
        if is_new {
            chown_to_directory_owner(data, &path)?;
            sync_parent(&path)?;
        }
        Ok(Box::new(FileBackend::new(file).map_err(OpenError::database(&path))?))
    });
    recover([first?, second?], limit, database, data)
}

/// Opens a log on backends and replays it. The log of a store with a newer schema is left alone.
pub(crate) fn recover(
    files: [Box<dyn StorageBackend>; 2],
    limit: u64,
    database: &Database,
    place: &Path,
) -> Result<Log, OpenError> {
    schema_of(&database.begin_read().map_err(Fault::from)?)?;
    Log::recover(files, limit, database).map_err(|fault| match fault {
        Fault::Full(_) => OpenError::Full(place.to_owned()),
        other => other.into(),
    })
}

/// Removes the log of a locked directory durably.
pub(crate) fn remove_log(data: &Path) -> Result<(), OpenError> {
    for path in LOG_NAMES.map(|name| data.join(name)) {
        match fs::remove_file(&path) {
            Ok(()) => sync_parent(&path)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(OpenError::io(&path)(error)),
        }
    }
    Ok(())
}

/// Creates an empty database file, readable by its owner only. The file must not exist.
pub(crate) fn create_file(path: &Path, cache_bytes: usize) -> Result<Database, OpenError> {
    let file = private_file().create_new(true).open(path).map_err(OpenError::io(path))?;
    builder(cache_bytes).create_file(file).map_err(OpenError::database(path))
}

/// Creates a file, readable by its owner only, with the content of another.
pub(crate) fn write_file(path: &Path, from: &mut File) -> Result<(), OpenError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(OpenError::io(path)(error)),
        _ => {}
    }
    let mut file = private_file().create_new(true).open(path).map_err(OpenError::io(path))?;
    io::copy(from, &mut file).map(drop).map_err(OpenError::io(path))
}

/// Changes the owner of a file to the directory's owner, so that the service can open a file that root created.
#[cfg(unix)]
pub(crate) fn chown_to_directory_owner(data: &Path, path: &Path) -> Result<(), OpenError> {
    use std::os::unix::fs::{MetadataExt, chown};
    let owner = |path: &Path| fs::metadata(path).map(|file| (file.uid(), file.gid())).map_err(OpenError::io(path));
    let ((uid, gid), (own_uid, own_gid)) = (owner(data)?, owner(path)?);
    // Only root can change the owner; files of other users belong to them already.
    if own_uid == 0 && uid != 0 {
        chown(path, Some(uid), (gid != own_gid).then_some(gid)).map_err(OpenError::io(path))?;
    }
    Ok(())
}

#[cfg(not(unix))]
pub(crate) fn chown_to_directory_owner(_: &Path, _: &Path) -> Result<(), OpenError> {
    Ok(())
}

/// Syncs a file.
pub(crate) fn sync_file(path: &Path) -> Result<(), OpenError> {
    private_file().open(path).and_then(|file| file.sync_all()).map_err(OpenError::io(path))
}

/// Syncs the directory of a file, so that its name is durable.
pub(crate) fn sync_parent(path: &Path) -> Result<(), OpenError> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if cfg!(unix) { sync_directory(parent).map_err(OpenError::io(parent)) } else { Ok(()) }
}

/// Links a file to a second name, `<name>.<what>` or a free numbered one, so that it remains when another file is
/// renamed over it.
pub(crate) fn keep_as(path: &Path, what: &str) -> Result<PathBuf, OpenError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    for number in 0_u32.. {
        let suffix = if number == 0 { String::new() } else { format!(".{number}") };
        let kept = path.with_file_name(format!("{name}.{what}{suffix}"));
        match fs::hard_link(path, &kept) {
            Ok(()) => return Ok(kept),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(OpenError::io(&kept)(error)),
        }
    }
    Err(OpenError::Exists(path.to_owned()))
}

/// Creates a directory and its parents durably.
fn create_directory(data: &Path) -> io::Result<()> {
    let missing: Vec<&Path> = data.ancestors().take_while(|path| !path.exists()).collect();
    private_directory().create(data)?;
    if cfg!(unix) {
        for parent in missing.into_iter().filter_map(Path::parent) {
            sync_directory(if parent.as_os_str().is_empty() { Path::new(".") } else { parent })?;
        }
    }
    Ok(())
}

fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Opens the database of a backend, or creates it.
///
/// # Errors
/// [`OpenError::LogOnly`] if the log has entries and the database is missing.
pub(crate) fn open_backend(
    backend: impl StorageBackend,
    logs: &[Box<dyn StorageBackend>],
    cache_bytes: usize,
) -> Result<Database, OpenError> {
    if is_unfinished(&backend)? {
        for log in logs {
            if log.len()? > 0 {
                return Err(OpenError::LogOnly(PathBuf::from("the backend")));
            }
        }
        copy_in(&new_image()?, &backend)?;
    }
    builder(cache_bytes).create_with_backend(backend).map_err(OpenError::database(Path::new("the backend")))
}

/// The magic number of a redb file.
const MAGIC: [u8; 9] = *b"redb\x1a\x0a\xa9\x0d\x0a";
/// Size of a write, bytes.
const CHUNK_LEN: usize = 4_096;

/// Returns whether a backend has no store: it is empty, or its magic number is incomplete.
fn is_unfinished(backend: &impl StorageBackend) -> io::Result<bool> {
    let length = backend.len()?;
    let mut start = [0; MAGIC.len()];
    let readable = usize::try_from(length).map_or(start.len(), |length| length.min(start.len()));
    backend.read(0, &mut start[..readable])?;
    let written = start.iter().zip(MAGIC).take_while(|(byte, magic)| *byte == magic).count();
    Ok(written < MAGIC.len() && start[written..].iter().all(|byte| *byte == 0))
}

fn copy_in(image: &[u8], backend: &impl StorageBackend) -> io::Result<()> {
    backend.set_len(0)?;
    backend.set_len(image.len() as u64)?;
    let mut without_magic = image.to_vec();
    without_magic[..MAGIC.len()].fill(0);
    for (number, chunk) in without_magic.chunks(CHUNK_LEN).enumerate() {
        if chunk.iter().any(|byte| *byte != 0) {
            backend.write((number * CHUNK_LEN) as u64, chunk)?;
        }
    }
    backend.sync_data()?;
    backend.write(0, &image[..MAGIC.len()])?;
    backend.sync_data()
}

/// Returns the bytes of a new store.
fn new_image() -> Result<Vec<u8>, OpenError> {
    let memory = Memory::default();
    let nowhere = Path::new("memory");
    let database = builder(0).create_with_backend(memory.clone()).map_err(OpenError::database(nowhere))?;
    create_schema(&database)?;
    drop(database);
    let mut image = vec![0; usize::try_from(memory.0.len()?).map_err(io::Error::other)?];
    memory.0.read(0, &mut image)?;
    Ok(image)
}

/// An in-memory database whose bytes can be read after it is closed.
#[derive(Debug, Clone, Default)]
struct Memory(Arc<InMemoryBackend>);

impl StorageBackend for Memory {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }
    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read(offset, out)
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }
    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }
    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write(offset, data)
    }
    fn try_lock_range(&self, _: std::ops::Bound<u64>, _: std::ops::Bound<u64>) -> Result<bool, BackendError> {
        Err(BackendError::Unsupported)
    }
}

pub(crate) fn builder(cache_bytes: usize) -> Builder {
    let mut builder = Builder::new();
    builder.set_cache_size(cache_bytes);
    builder
}

/// Creates the tables and stores the schema version.
pub(crate) fn create_schema(database: &Database) -> Result<(), Fault> {
    let transaction = begin_write(database)?;
    let mut tables = Tables::of(&transaction);
    tables.create_all()?;
    single::store(tables.meta()?, meta::SCHEMA, &SCHEMA_VERSION.to_be_bytes())?;
    single::store(tables.meta()?, meta::LOG, &Lsn::START.to_bytes())?;
    drop(tables);
    transaction.commit()?;
    Ok(())
}

/// Checks that a database belongs to Hivetill and has a supported schema.
pub(crate) fn check_schema(database: &Database) -> Result<(), OpenError> {
    schema_of(&database.begin_read().map_err(Fault::from)?)?;
    Ok(add_tables(database)?)
}

/// Returns the schema version of a store, which must be supported.
pub(crate) fn schema_of(snapshot: &ReadTransaction) -> Result<u32, OpenError> {
    let found = version_of(snapshot)?;
    if found > SCHEMA_VERSION {
        return Err(OpenError::SchemaNewer { found, known: SCHEMA_VERSION });
    }
    Ok(found)
}

/// Returns the schema version of a store, supported or not.
pub(crate) fn version_of(snapshot: &ReadTransaction) -> Result<u32, OpenError> {
    let names = match snapshot.open_table(META) {
        Ok(names) => names,
        Err(TableError::Storage(error)) => return Err(Fault::from(error).into()),
        Err(_) => return Err(OpenError::Foreign),
    };
    let Some(bytes) = single::stored(&names, meta::SCHEMA)? else { return Err(OpenError::Foreign) };
    Ok(u32::from_be_bytes(bytes.try_into().map_err(|_| OpenError::Foreign)?))
}

/// Creates tables that are newer than the store. A new table needs no new schema version, because older versions ignore
/// it.
fn add_tables(database: &Database) -> Result<(), Fault> {
    let transaction = begin_write(database)?;
    let before = transaction.list_tables()?.count();
    Tables::of(&transaction).create_all()?;
    if transaction.list_tables()?.count() > before {
        transaction.commit()?;
    } else {
        transaction.abort()?;
    }
    Ok(())
}

#[cfg(unix)]
fn private_directory() -> fs::DirBuilder {
    use std::os::unix::fs::DirBuilderExt;
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder
}

#[cfg(unix)]
fn private_file() -> OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    options
}

#[cfg(not(unix))]
fn private_directory() -> fs::DirBuilder {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    builder
}

#[cfg(not(unix))]
fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    options
}
