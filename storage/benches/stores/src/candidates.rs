//! The compared stores. Each commits the rows of a group of payment creations durably.

use std::{path::Path, time::Duration};

use redb::{Database, Durability, TableDefinition};

use crate::rows::Row;

/// A store to compare.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Candidate {
    /// Hivetill's store: write-ahead log and redb.
    Log,
    /// redb alone, with the tables of Hivetill's store.
    Redb,
    /// redb alone, with all rows in one table.
    RedbOneTable,
    /// redb alone in one table, with quick repair: it opens after a crash without a full repair.
    RedbQuickRepair,
    /// redb alone in one table, durable every 100 ms: acknowledged commits can be lost.
    RedbLazy,
    /// fjall, each commit synced.
    Fjall,
    /// SQLite in WAL mode, each commit synced.
    Sqlite,
}

impl Candidate {
    pub const ALL: [Self; 7] =
        [Self::Log, Self::Redb, Self::RedbOneTable, Self::RedbQuickRepair, Self::RedbLazy, Self::Fjall, Self::Sqlite];

    pub fn name(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Redb => "redb",
            Self::RedbOneTable => "redb-one-table",
            Self::RedbQuickRepair => "redb-quick-repair",
            Self::RedbLazy => "redb-lazy",
            Self::Fjall => "fjall",
            Self::Sqlite => "sqlite",
        }
    }

    /// Opens the store in a directory. Hivetill's own store is opened elsewhere.
    pub fn open(self, directory: &Path, tables: &[String]) -> Box<dyn Rows> {
        match self {
            Self::Log => unreachable!("it is opened as a store"),
            Self::Redb => Box::new(Redb::open(directory, tables.to_vec(), Sync::Each)),
            Self::RedbOneTable => Box::new(Redb::open(directory, Vec::new(), Sync::Each)),
            Self::RedbQuickRepair => Box::new(Redb::open(directory, Vec::new(), Sync::EachQuickRepair)),
            Self::RedbLazy => Box::new(Redb::open(directory, Vec::new(), Sync::Lazy)),
            Self::Fjall => Box::new(Fjall::open(directory)),
            Self::Sqlite => Box::new(Sqlite::open(directory)),
        }
    }
}

/// Writes the rows of a group of payment creations.
pub trait Rows: Send {
    /// Commits the rows.
    fn commit(&mut self, group: &[Vec<Row>]);
    /// Returns the number of stored rows.
    fn count(&self) -> u64;
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sync {
    Each,
    EachQuickRepair,
    Lazy,
}

/// Maximum interval between synced commits.
const LAZY: Duration = Duration::from_millis(100);
const ONE: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new("rows");

struct Redb {
    database: Database,
    /// Empty if all rows share one table.
    tables: Vec<String>,
    sync: Sync,
    synced: std::time::Instant,
}

impl Redb {
    fn open(directory: &Path, tables: Vec<String>, sync: Sync) -> Self {
        let database = Database::builder()
            .set_cache_size(64 * 1024 * 1024)
            .create(directory.join("rows.redb"))
            .expect("a redb database");
        Self { database, tables, sync, synced: std::time::Instant::now() }
    }
}

/// Returns a row's key with a prefix for its table, for a shared table.
fn prefixed(row: &Row) -> Vec<u8> {
    [&[u8::try_from(row.table).expect("few tables")], row.key.as_slice()].concat()
}

impl Rows for Redb {
    fn commit(&mut self, group: &[Vec<Row>]) {
        let mut transaction = self.database.begin_write().expect("a transaction");
        let is_lazy = self.sync == Sync::Lazy && self.synced.elapsed() < LAZY;
        transaction
            .set_durability(if is_lazy { Durability::None } else { Durability::Immediate })
            .expect("a durability");
        transaction.set_quick_repair(self.sync == Sync::EachQuickRepair);
        let rows = || group.iter().flatten();
        if self.tables.is_empty() {
            let mut table = transaction.open_table(ONE).expect("a table");
            for row in rows() {
                table.insert(prefixed(row).as_slice(), row.value.as_slice()).expect("a row");
            }
        }
        for (at, name) in self.tables.iter().enumerate() {
            let definition: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new(name);
            let mut table = transaction.open_table(definition).expect("a table");
            for row in rows().filter(|row| row.table == at) {
                table.insert(row.key.as_slice(), row.value.as_slice()).expect("a row");
            }
        }
        transaction.commit().expect("a commit");
        if !is_lazy {
            self.synced = std::time::Instant::now();
        }
    }

    fn count(&self) -> u64 {
        use redb::{ReadableDatabase, ReadableTableMetadata};
        let transaction = self.database.begin_read().expect("a transaction");
        let names = if self.tables.is_empty() { vec!["rows".to_owned()] } else { self.tables.clone() };
        let of = |name: &String| {
            let definition: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new(name);
            transaction.open_table(definition).and_then(|table| Ok(table.len()?)).expect("a table")
        };
        names.iter().map(of).sum()
    }
}

struct Fjall {
    database: fjall::Database,
    rows: fjall::Keyspace,
}

impl Fjall {
    fn open(directory: &Path) -> Self {
        let database = fjall::Database::builder(directory.join("rows.fjall")).open().expect("a fjall database");
        let rows = database.keyspace("rows", fjall::KeyspaceCreateOptions::default).expect("a keyspace");
        Self { database, rows }
    }
}

impl Rows for Fjall {
    fn commit(&mut self, group: &[Vec<Row>]) {
        let mut batch = self.database.batch().durability(Some(fjall::PersistMode::SyncData));
        for row in group.iter().flatten() {
            batch.insert(&self.rows, prefixed(row), row.value.as_slice());
        }
        batch.commit().expect("a commit");
    }

    fn count(&self) -> u64 {
        self.rows.len().expect("a count") as u64
    }
}

struct Sqlite(rusqlite::Connection);

impl Sqlite {
    fn open(directory: &Path) -> Self {
        let connection = rusqlite::Connection::open(directory.join("rows.sqlite")).expect("a SQLite database");
        connection
            .execute_batch(
                "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -65536;
                 CREATE TABLE IF NOT EXISTS rows (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;",
            )
            .expect("its settings");
        Self(connection)
    }
}

impl Rows for Sqlite {
    fn commit(&mut self, group: &[Vec<Row>]) {
        let transaction = self.0.transaction().expect("a transaction");
        {
            let mut insert = transaction
                .prepare_cached(
                    "INSERT INTO rows (key, value) VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = ?2",
                )
                .expect("a statement");
            for row in group.iter().flatten() {
                insert.execute((prefixed(row), &row.value)).expect("a row");
            }
        }
        transaction.commit().expect("a commit");
    }

    fn count(&self) -> u64 {
        let count: i64 = self.0.query_row("SELECT count(*) FROM rows", (), |row| row.get(0)).expect("a count");
        u64::try_from(count).expect("a count")
    }
}
