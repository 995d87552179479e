//! Values of columns: what ids and times are in PostgreSQL, and lists of values that a statement takes as arrays.

use bytes::{BufMut, BytesMut};
use engine::time::Timestamp;
use tokio_postgres::{
    Row,
    types::{FromSql, IsNull, ToSql, Type, accepts, to_sql_checked},
};

type Failure = Box<dyn std::error::Error + Sync + Send>;

/// An id as a UUID: its 128 bits, in an order that PostgreSQL keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Id(pub(crate) u128);

impl ToSql for Id {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Failure> {
        out.put_u128(self.0);
        Ok(IsNull::No)
    }

    accepts!(UUID);
    to_sql_checked!();
}

impl<'a> FromSql<'a> for Id {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Failure> {
        Ok(Self(u128::from_be_bytes(raw.try_into()?)))
    }

    accepts!(UUID);
}

/// Microseconds from 1970 to 2000, where PostgreSQL begins to count.
const EPOCH_MICROS: i64 = 946_684_800_000_000;

/// A time as a `timestamptz`, in whole milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment(pub(crate) Timestamp);

impl ToSql for Moment {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Failure> {
        // No timestamp is beyond the year 9998, far within 63 bits of microseconds.
        out.put_i64(signed(self.0.millis()) * 1_000 - EPOCH_MICROS);
        Ok(IsNull::No)
    }

    accepts!(TIMESTAMPTZ);
    to_sql_checked!();
}

impl<'a> FromSql<'a> for Moment {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Failure> {
        let micros = i64::from_be_bytes(raw.try_into()?).saturating_add(EPOCH_MICROS);
        Ok(Self(Timestamp::from_millis(u64::try_from(micros.div_euclid(1_000)).unwrap_or(0))))
    }

    accepts!(TIMESTAMPTZ);
}

/// Returns a count as PostgreSQL's signed type, which can represent all counts that occur.
pub(crate) fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Returns a count that a signed column holds; one below 0 is none.
pub(crate) fn unsigned(count: i64) -> u64 {
    u64::try_from(count).unwrap_or(0)
}

/// Reads a column by its place.
///
/// # Errors
/// [`Fault::Failed`](super::fault::Fault::Failed) where the column has another type.
pub(crate) fn column<'r, T: FromSql<'r>>(row: &'r Row, place: usize) -> Result<T, super::fault::Fault> {
    row.try_get(place).map_err(|error| super::fault::Fault::Failed(super::fault::text(&error)))
}

/// Reads a column of bytes of a fixed length.
pub(crate) fn bytes_of<const N: usize>(row: &Row, place: usize) -> Result<[u8; N], super::fault::Fault> {
    let bytes: &[u8] = column(row, place)?;
    let wrong = |_| super::fault::Fault::Failed(format!("{} bytes where {N} were expected", bytes.len()));
    bytes.try_into().map_err(wrong)
}

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Uuid,
    Integer,
    Small,
    Whole,
    Flag,
    Text,
    Bytes,
    Time,
}

impl Kind {
    /// Returns the type's name.
    pub(crate) const fn sql(self) -> &'static str {
        match self {
            Self::Uuid => "uuid",
            Self::Integer => "bigint",
            Self::Small => "smallint",
            Self::Whole => "integer",
            Self::Flag => "boolean",
            Self::Text => "text",
            Self::Bytes => "bytea",
            Self::Time => "timestamptz",
        }
    }

    /// Returns the type as the driver knows it.
    pub(crate) const fn driver_type(self) -> Type {
        match self {
            Self::Uuid => Type::UUID,
            Self::Integer => Type::INT8,
            Self::Small => Type::INT2,
            Self::Whole => Type::INT4,
            Self::Flag => Type::BOOL,
            Self::Text => Type::TEXT,
            Self::Bytes => Type::BYTEA,
            Self::Time => Type::TIMESTAMPTZ,
        }
    }

    fn list(self) -> Values {
        match self {
            Self::Uuid => Values::Uuid(Vec::new()),
            Self::Integer => Values::Integer(Vec::new()),
            Self::Small => Values::Small(Vec::new()),
            Self::Whole => Values::Whole(Vec::new()),
            Self::Flag => Values::Flag(Vec::new()),
            Self::Text => Values::Text(Vec::new()),
            Self::Bytes => Values::Bytes(Vec::new()),
            Self::Time => Values::Time(Vec::new()),
        }
    }
}

/// The values of one column, one for each row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Values {
    Uuid(Vec<Option<Id>>),
    Integer(Vec<Option<i64>>),
    Small(Vec<Option<i16>>),
    Whole(Vec<Option<i32>>),
    Flag(Vec<Option<bool>>),
    Text(Vec<Option<String>>),
    Bytes(Vec<Option<Vec<u8>>>),
    Time(Vec<Option<Moment>>),
}

impl Values {
    /// Returns them as a parameter of a statement.
    pub(crate) fn parameter(&self) -> &(dyn ToSql + Sync) {
        match self {
            Self::Uuid(list) => list,
            Self::Integer(list) => list,
            Self::Small(list) => list,
            Self::Whole(list) => list,
            Self::Flag(list) => list,
            Self::Text(list) => list,
            Self::Bytes(list) => list,
            Self::Time(list) => list,
        }
    }
}

/// A value of one column of one row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cell {
    Uuid(Option<u128>),
    Integer(Option<i64>),
    Small(i16),
    Whole(i32),
    Flag(bool),
    Text(String),
    Bytes(Vec<u8>),
    Time(Option<Timestamp>),
}

/// Writes a value of a key as a finding names it.
impl std::fmt::Display for Cell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Uuid(Some(bits)) => write!(f, "{bits:032x}"),
            Self::Integer(Some(count)) => write!(f, "{count}"),
            Self::Small(count) => write!(f, "{count}"),
            Self::Whole(count) => write!(f, "{count}"),
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::Text(text) => f.write_str(text),
            Self::Bytes(bytes) => bytes.iter().take(20).try_for_each(|byte| write!(f, "{byte:02x}")),
            Self::Time(Some(time)) => write!(f, "{time}"),
            Self::Uuid(None) | Self::Integer(None) | Self::Time(None) => f.write_str("none"),
        }
    }
}

impl ToSql for Cell {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Failure> {
        match self {
            Self::Uuid(bits) => bits.map(Id).to_sql(kind, out),
            Self::Integer(count) => count.to_sql(kind, out),
            Self::Small(count) => count.to_sql(kind, out),
            Self::Whole(count) => count.to_sql(kind, out),
            Self::Flag(flag) => flag.to_sql(kind, out),
            Self::Text(text) => text.to_sql(kind, out),
            Self::Bytes(bytes) => bytes.to_sql(kind, out),
            Self::Time(time) => time.map(Moment).to_sql(kind, out),
        }
    }

    accepts!(UUID, INT8, INT2, INT4, BOOL, TEXT, BYTEA, TIMESTAMPTZ);
    to_sql_checked!();
}

impl From<u64> for Cell {
    fn from(count: u64) -> Self {
        Self::Integer(Some(signed(count)))
    }
}

impl From<u32> for Cell {
    fn from(count: u32) -> Self {
        Self::Integer(Some(count.into()))
    }
}

impl From<u128> for Cell {
    fn from(bits: u128) -> Self {
        Self::Uuid(Some(bits))
    }
}

impl From<Option<u128>> for Cell {
    fn from(bits: Option<u128>) -> Self {
        Self::Uuid(bits)
    }
}

impl From<bool> for Cell {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<Vec<u8>> for Cell {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

impl From<&[u8]> for Cell {
    fn from(bytes: &[u8]) -> Self {
        Self::Bytes(bytes.to_vec())
    }
}

impl From<Timestamp> for Cell {
    fn from(time: Timestamp) -> Self {
        Self::Time(Some(time))
    }
}

impl From<Option<Timestamp>> for Cell {
    fn from(time: Option<Timestamp>) -> Self {
        Self::Time(time)
    }
}

/// Rows by column, as arrays that a statement takes.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Columns {
    pub(crate) lists: Vec<Values>,
    pub(crate) rows: usize,
}

impl Columns {
    /// Begins with no row of columns of these types.
    pub(crate) fn of(kinds: impl IntoIterator<Item = Kind>) -> Self {
        Self { lists: kinds.into_iter().map(Kind::list).collect(), rows: 0 }
    }

    /// Adds a row.
    ///
    /// # Panics
    /// If the row has other columns.
    pub(crate) fn push(&mut self, row: impl IntoIterator<Item = Cell>) {
        let mut count = 0;
        for (list, cell) in self.lists.iter_mut().zip(row) {
            count += 1;
            match (list, cell) {
                (Values::Uuid(list), Cell::Uuid(bits)) => list.push(bits.map(Id)),
                (Values::Integer(list), Cell::Integer(count)) => list.push(count),
                (Values::Small(list), Cell::Small(count)) => list.push(Some(count)),
                (Values::Whole(list), Cell::Whole(count)) => list.push(Some(count)),
                (Values::Flag(list), Cell::Flag(flag)) => list.push(Some(flag)),
                (Values::Text(list), Cell::Text(text)) => list.push(Some(text)),
                (Values::Bytes(list), Cell::Bytes(bytes)) => list.push(Some(bytes)),
                (Values::Time(list), Cell::Time(time)) => list.push(time.map(Moment)),
                _ => panic!("value {count} of a row has another type than its column"),
            }
        }
        assert_eq!(count, self.lists.len(), "a row has a value for each column");
        self.rows += 1;
    }
}
