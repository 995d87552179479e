//! Complete rows: with every column, as they are copied to another store and verified.

use tokio_postgres::Row;

use crate::postgres::{
    connection::Connection,
    fault::Fault,
    table::{Column, Table, names},
    tables::{
        business::{AuditRow, ComplianceRow, IdempotencyRow, InvoiceRow, PeriodRow, SingleRow},
        duties::{DutyRow, EngineRow},
        ledger::{ClaimRow, NameRow, UnmatchedRow, UseRow},
        merchants::{AccountRow, KeyRow},
        payments::WordRow,
        webhooks::{AttemptRow, DeliveryRow, EndpointRow, ListRow},
    },
    values::{Cell, Id, Kind, Moment},
};

/// Rows of one page.
const PAGE: i64 = 1_000;

/// A table whose rows can be read with every column.
pub(crate) trait Whole: Table {
    /// Reads a row with every column: those of the key, of the record, and those that its record does not contain.
    ///
    /// # Errors
    /// [`Fault::Damaged`] where its record does not decode.
    fn whole(row: &Row) -> Result<(Self::Key, Self), Fault> {
        Self::read(row)
    }
}

macro_rules! read_whole {
    ($($row:ty),+ $(,)?) => { $(impl Whole for $row {})+ };
}

read_whole!(
    AccountRow,
    AttemptRow,
    AuditRow,
    ClaimRow,
    ComplianceRow,
    DeliveryRow,
    DutyRow,
    EndpointRow,
    EngineRow,
    IdempotencyRow,
    InvoiceRow,
    KeyRow,
    ListRow,
    NameRow,
    PeriodRow,
    SingleRow,
    UnmatchedRow,
    UseRow,
    WordRow,
);

/// The columns of a table that are written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) table: &'static str,
    key: &'static [Column],
    values: &'static [Column],
}

impl Shape {
    /// Returns the columns of a table.
    pub(crate) const fn of<T: Table>() -> Self {
        Self { table: T::NAME, key: T::KEY, values: T::VALUES }
    }

    /// Returns the columns of a table whose rows the program never reads one by one.
    pub(crate) const fn new(table: &'static str, key: &'static [Column], values: &'static [Column]) -> Self {
        Self { table, key, values }
    }

    /// Returns the columns, those of the key first.
    pub(crate) fn columns(&self) -> impl Iterator<Item = &'static Column> {
        self.key.iter().chain(self.values)
    }
}

/// Returns the columns that [`Whole::whole`] needs, as [`Table::read`] expects them, and then the others.
fn selected<T: Table>() -> Vec<&'static str> {
    let mut columns: Vec<&str> = T::KEY.iter().map(|(name, _)| *name).chain(T::READ.iter().copied()).collect();
    let others = T::VALUES.iter().map(|(name, _)| *name).filter(|name| !T::READ.contains(name));
    columns.extend(others);
    columns
}

/// Returns the values of a stored row in the order of [`Shape::columns`].
pub(crate) fn stored<T: Table>(row: &Row) -> Result<Vec<Cell>, Fault> {
    Shape::of::<T>().columns().map(|(name, kind)| cell(row, name, *kind)).collect()
}

fn cell(row: &Row, name: &str, kind: Kind) -> Result<Cell, Fault> {
    Ok(match kind {
        Kind::Uuid => Cell::Uuid(named::<Option<Id>>(row, name)?.map(|Id(bits)| bits)),
        Kind::Integer => Cell::Integer(named(row, name)?),
        Kind::Small => Cell::Small(named(row, name)?),
        Kind::Whole => Cell::Whole(named(row, name)?),
        Kind::Flag => Cell::Flag(named(row, name)?),
        Kind::Text => Cell::Text(named(row, name)?),
        Kind::Bytes => Cell::Bytes(named(row, name)?),
        Kind::Time => Cell::Time(named::<Option<Moment>>(row, name)?.map(|Moment(at)| at)),
    })
}

/// Reads a column by its name.
pub(crate) fn named<'r, T: tokio_postgres::types::FromSql<'r>>(row: &'r Row, name: &str) -> Result<T, Fault> {
    row.try_get(name).map_err(|error| Fault::Failed(super::fault::text(&error)))
}

/// The rows of a table in the order of its key, page by page. All pages are of one snapshot if the connection is in a transaction
/// that has one.
#[derive(Debug)]
pub(crate) struct Pages<'c, T> {
    connection: &'c Connection,
    /// The key of the last row that was read.
    after: Option<Vec<Cell>>,
    is_over: bool,
    table: std::marker::PhantomData<fn() -> T>,
}

impl<'c, T: Table> Pages<'c, T> {
    /// Begins with the first row.
    pub(crate) const fn of(connection: &'c Connection) -> Self {
        Self { connection, after: None, is_over: false, table: std::marker::PhantomData }
    }

    /// Returns the next rows; none at the end of the table.
    ///
    /// # Errors
    /// See [`Fault`].
    pub(crate) async fn next(&mut self) -> Result<Vec<Row>, Fault> {
        if self.is_over {
            return Ok(Vec::new());
        }
        let (columns, key) = (selected::<T>().join(", "), names(T::KEY));
        let after = self.after.as_deref().unwrap_or_default();
        let places = T::KEY.iter().zip(1..).map(|((_, kind), place)| format!("${place}::{}", kind.sql()));
        let condition = match after.is_empty() {
            true => String::new(),
            false => format!("WHERE ({key}) > ({})", places.collect::<Vec<_>>().join(", ")),
        };
        let sql = format!("SELECT {columns} FROM {} {condition} ORDER BY {key} LIMIT {PAGE}", T::NAME);
        let parameters: Vec<_> = after.iter().map(|cell| cell as &(dyn tokio_postgres::types::ToSql + Sync)).collect();
        let rows = self.connection.query(&sql, &parameters).await?;
        self.is_over = i64::try_from(rows.len()).is_ok_and(|count| count < PAGE);
        if let Some(last) = rows.last() {
            let key = T::KEY.iter().map(|(name, kind)| cell(last, name, *kind)).collect::<Result<_, _>>()?;
            self.after = Some(key);
        }
        Ok(rows)
    }
}
