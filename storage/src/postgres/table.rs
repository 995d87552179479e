//! Rows as a commit handles them: loaded by key, changed in memory, and written as what is different in the end.

use std::collections::{BTreeMap, BTreeSet};

use tokio_postgres::Row;

use crate::postgres::{
    connection::Connection,
    fault::Fault,
    values::{Cell, Columns, Kind},
};

/// The names of all tables of a database that the program reads and writes.
pub const TABLE_NAMES: [&str; 31] = [
    "merchants",
    "api_keys",
    "accounts",
    "payments",
    "transfers",
    "merchant_usage",
    "payment_days",
    "payment_waits",
    "payment_words",
    "idempotency",
    "events",
    "event_lists",
    "deliveries",
    "outbox_heads",
    "attempts",
    "endpoints",
    "claims",
    "claim_names",
    "transaction_uses",
    "unmatched_transfers",
    "ledger_entries",
    "reconciled_days",
    "compliance_statuses",
    "billing_periods",
    "invoice_payments",
    "audit_log",
    "single_values",
    "engines",
    "duties",
    "commits",
    "schema_migrations",
];

/// The behavior of an insertion if a row has the same key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Collision {
    /// The commit fails: another writer inserted the row.
    Fail,
    /// The row is replaced.
    Replace,
    /// The row stays as it is.
    Keep,
}

/// A column and its type.
pub(crate) type Column = (&'static str, Kind);

/// The rows of a table.
pub(crate) trait Table: Clone + Send + Sync + 'static {
    /// The key.
    type Key: Ord + Clone + Send + Sync;

    /// The table's name.
    const NAME: &'static str;
    /// The columns of its key.
    const KEY: &'static [Column];
    /// The other columns that are written.
    const VALUES: &'static [Column];
    /// The columns that are read beside the key.
    const READ: &'static [&'static str];
    /// A column of integers that a change or removal must find as it was read.
    const GUARD: Option<&'static str> = None;
    /// The behavior of an insertion if a row has the same key.
    const COLLISION: Collision = Collision::Fail;

    /// Returns the values of a key.
    fn key_cells(key: &Self::Key) -> Vec<Cell>;

    /// Returns the values of the other columns.
    fn cells(&self) -> Vec<Cell>;

    /// Returns the value of the guard.
    fn guard(&self) -> u64 {
        0
    }

    /// Reads a row of key and [`READ`](Self::READ).
    ///
    /// # Errors
    /// [`Fault::Damaged`] where its record does not decode.
    fn read(row: &Row) -> Result<(Self::Key, Self), Fault>;
}

/// A row as it was loaded and as it is now.
#[derive(Debug, Clone)]
struct Entry<T> {
    before: Option<T>,
    now: Option<T>,
    is_changed: bool,
}

/// The rows of one table that a group of batches reads and changes.
#[derive(Debug)]
pub(crate) struct Rows<T: Table> {
    entries: BTreeMap<T::Key, Entry<T>>,
    wanted: BTreeSet<T::Key>,
    /// Rows that must be at the commit as they were read.
    locked: BTreeSet<T::Key>,
    /// What the current batch changed: each row as it was before the batch.
    undo: Vec<(T::Key, Entry<T>)>,
}

impl<T: Table> Default for Rows<T> {
    fn default() -> Self {
        Self { entries: BTreeMap::new(), wanted: BTreeSet::new(), locked: BTreeSet::new(), undo: Vec::new() }
    }
}

impl<T: Table> Rows<T> {
    /// Requests that a row be loaded.
    pub(crate) fn want(&mut self, key: T::Key) {
        if !self.entries.contains_key(&key) {
            self.wanted.insert(key);
        }
    }

    /// Takes the keys that are to be loaded; each is absent until its row is found.
    pub(crate) fn take_wanted(&mut self) -> BTreeSet<T::Key> {
        let wanted = std::mem::take(&mut self.wanted);
        for key in &wanted {
            self.entries.insert(key.clone(), Entry { before: None, now: None, is_changed: false });
        }
        wanted
    }

    /// Adds a row that was loaded.
    pub(crate) fn found(&mut self, key: T::Key, row: T) {
        self.entries.insert(key, Entry { before: Some(row.clone()), now: Some(row), is_changed: false });
    }

    /// Returns a row as it is now; none if it does not exist or was not loaded.
    pub(crate) fn get(&self, key: &T::Key) -> Option<&T> {
        self.entries.get(key)?.now.as_ref()
    }

    /// Returns every row as it is now.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&T::Key, &T)> {
        self.entries.iter().filter_map(|(key, entry)| Some((key, entry.now.as_ref()?)))
    }

    /// Returns the rows of a range of keys as they are now.
    pub(crate) fn range(
        &self,
        range: impl std::ops::RangeBounds<T::Key>,
    ) -> impl DoubleEndedIterator<Item = (&T::Key, &T)> {
        self.entries.range(range).filter_map(|(key, entry)| Some((key, entry.now.as_ref()?)))
    }

    /// Returns the rows that are different now, as they were and as they are.
    pub(crate) fn changes(&self) -> impl Iterator<Item = (&T::Key, Option<&T>, Option<&T>)> {
        let changed = self.entries.iter().filter(|(_, entry)| entry.is_changed);
        changed.map(|(key, entry)| (key, entry.before.as_ref(), entry.now.as_ref()))
    }

    /// Returns whether a row is different now.
    pub(crate) fn is_changed(&self, key: &T::Key) -> bool {
        self.entries.get(key).is_some_and(|entry| entry.is_changed)
    }

    /// Returns the rows that the current batch set, as they are now.
    pub(crate) fn touched(&self) -> impl Iterator<Item = (&T::Key, Option<&T>)> {
        self.undo.iter().map(|(key, _)| (key, self.get(key)))
    }

    /// Assumes that a row is absent without loading it. The insertion of an existing row fails.
    pub(crate) fn assume_absent(&mut self, key: T::Key) {
        self.entries.entry(key).or_insert(Entry { before: None, now: None, is_changed: false });
    }

    /// Sets a row, or removes it.
    pub(crate) fn set(&mut self, key: T::Key, row: Option<T>) {
        let absent = Entry { before: None, now: None, is_changed: false };
        let entry = self.entries.entry(key.clone()).or_insert(absent);
        self.undo.push((key, entry.clone()));
        entry.now = row;
        entry.is_changed = true;
    }

    /// Inserts or replaces a row.
    pub(crate) fn put(&mut self, key: T::Key, row: T) {
        self.set(key, Some(row));
    }

    /// Removes a row, whether it was loaded or not.
    pub(crate) fn remove_unread(&mut self, key: T::Key, row: T) {
        let unread = Entry { before: Some(row.clone()), now: Some(row), is_changed: false };
        self.entries.entry(key.clone()).or_insert(unread);
        self.set(key, None);
    }

    /// Makes the commit fail unless the row is as it was read. A row that is not there cannot be locked.
    pub(crate) fn lock(&mut self, key: T::Key) {
        self.locked.insert(key);
    }

    /// Ends a batch: its changes stay.
    pub(crate) fn accept(&mut self) {
        self.undo.clear();
    }

    /// Ends a rejected batch: its changes are undone.
    pub(crate) fn refuse(&mut self) {
        while let Some((key, entry)) = self.undo.pop() {
            self.entries.insert(key, entry);
        }
    }

    /// Returns whether nothing is different.
    pub(crate) fn is_unchanged(&self) -> bool {
        self.entries.values().all(|entry| !entry.is_changed)
    }

    /// Adds what is different to a statement.
    pub(crate) fn write(&self, statement: &mut super::statement::Statement) {
        let all = || T::KEY.iter().chain(T::VALUES).map(|(_, kind)| *kind);
        let guard = || T::GUARD.map(|_| Kind::Integer);
        let (mut new, mut changed) = (Columns::of(all()), Columns::of(all().chain(guard())));
        let mut gone = Columns::of(T::KEY.iter().map(|(_, kind)| *kind).chain(guard()));
        for (key, before, now) in self.changes() {
            let guard = |row: &T| T::GUARD.map(|_| Cell::from(row.guard()));
            let cells = |row: &T| T::key_cells(key).into_iter().chain(row.cells());
            match (before, now) {
                (None, Some(now)) => new.push(cells(now)),
                (Some(before), Some(now)) => changed.push(cells(now).chain(guard(before))),
                (Some(before), None) => gone.push(T::key_cells(key).into_iter().chain(guard(before))),
                (None, None) => {}
            }
        }
        if new.rows > 0 {
            statement.add(format_args!("{}_new", T::NAME), &insertion::<T>(), new, None);
        }
        if changed.rows > 0 {
            let expected = T::GUARD.map(|_| changed.rows);
            statement.add(format_args!("{}_changed", T::NAME), &change::<T>(), changed, expected);
        }
        if gone.rows > 0 {
            let expected = T::GUARD.map(|_| gone.rows);
            statement.add(format_args!("{}_gone", T::NAME), &removal::<T>(), gone, expected);
        }
        let locked = self.locked();
        if locked.rows > 0 {
            let expected = Some(locked.rows);
            statement.add(format_args!("{}_same", T::NAME), &lock::<T>(), locked, expected);
        }
    }

    /// Returns the keys and guards of the rows that are locked. A row that is changed has a guard already.
    fn locked(&self) -> Columns {
        let kinds = T::KEY.iter().map(|(_, kind)| *kind);
        let mut rows = Columns::of(kinds.chain(T::GUARD.map(|_| Kind::Integer)));
        for key in self.locked.iter().filter(|key| !self.is_changed(key)) {
            let Some(row) = self.get(key) else { continue };
            rows.push(T::key_cells(key).into_iter().chain(T::GUARD.map(|_| Cell::from(row.guard()))));
        }
        rows
    }
}

/// Returns the names of columns, separated by commas.
pub(crate) fn names(columns: &[Column]) -> String {
    columns.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

/// Returns conditions that bind a table's key to a list of keys.
fn bound<T: Table>() -> String {
    let equal = T::KEY.iter().map(|(name, _)| format!("t.{name} = u.{name}"));
    let guard = T::GUARD.iter().map(|name| format!("t.{name} = u.guard_"));
    equal.chain(guard).collect::<Vec<_>>().join(" AND ")
}

fn insertion<T: Table>() -> String {
    let collision = match T::COLLISION {
        Collision::Fail => String::new(),
        Collision::Keep => " ON CONFLICT DO NOTHING".to_owned(),
        Collision::Replace => {
            let set = T::VALUES.iter().map(|(name, _)| format!("{name} = excluded.{name}"));
            format!(" ON CONFLICT ({}) DO UPDATE SET {}", names(T::KEY), set.collect::<Vec<_>>().join(", "))
        }
    };
    let separator = if T::VALUES.is_empty() { "" } else { ", " };
    let columns = format!("{}{separator}{}", names(T::KEY), names(T::VALUES));
    format!("INSERT INTO {} ({columns}) SELECT * FROM {{unnest}}{collision}", T::NAME)
}

fn change<T: Table>() -> String {
    let set = T::VALUES.iter().map(|(name, _)| format!("{name} = u.{name}")).collect::<Vec<_>>().join(", ");
    let guard = if T::GUARD.is_some() { ", guard_" } else { "" };
    let columns = format!("{}, {}{guard}", names(T::KEY), names(T::VALUES));
    format!("UPDATE {} AS t SET {set} FROM {{unnest}} AS u ({columns}) WHERE {}", T::NAME, bound::<T>())
}

fn removal<T: Table>() -> String {
    let guard = if T::GUARD.is_some() { ", guard_" } else { "" };
    format!("DELETE FROM {} AS t USING {{unnest}} AS u ({}{guard}) WHERE {}", T::NAME, names(T::KEY), bound::<T>())
}

fn lock<T: Table>() -> String {
    let guard = if T::GUARD.is_some() { ", guard_" } else { "" };
    let columns = format!("{}{guard}", names(T::KEY));
    format!("SELECT 1 FROM {} AS t JOIN {{unnest}} AS u ({columns}) ON {} FOR SHARE OF t", T::NAME, bound::<T>())
}

/// Returns the columns of key and [`Table::READ`], each with a prefix.
pub(crate) fn read_columns<T: Table>(prefix: &str) -> String {
    let read = T::KEY.iter().map(|(name, _)| *name).chain(T::READ.iter().copied());
    read.map(|name| format!("{prefix}.{name}")).collect::<Vec<_>>().join(", ")
}

/// Loads the rows that are wanted.
///
/// # Errors
/// See [`Fault`].
pub(crate) async fn load<T: Table>(connection: &Connection, rows: &mut Rows<T>) -> Result<(), Fault> {
    let wanted = rows.take_wanted();
    if wanted.is_empty() {
        return Ok(());
    }
    let mut keys = Columns::of(T::KEY.iter().map(|(_, kind)| *kind));
    wanted.iter().for_each(|key| keys.push(T::key_cells(key)));
    let unnest = super::statement::unnest(1, &keys);
    let equal = T::KEY.iter().map(|(name, _)| format!("t.{name} = u.{name}")).collect::<Vec<_>>().join(" AND ");
    let (columns, key) = (read_columns::<T>("t"), names(T::KEY));
    let sql = format!("SELECT {columns} FROM {unnest} AS u ({key}) JOIN {} AS t ON {equal}", T::NAME);
    let parameters: Vec<_> = keys.lists.iter().map(super::values::Values::parameter).collect();
    for row in connection.query(&sql, &parameters).await? {
        let (key, row) = T::read(&row)?;
        rows.found(key, row);
    }
    Ok(())
}
