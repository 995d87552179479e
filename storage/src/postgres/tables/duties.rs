//! Rows of the engines that have a lease, and of the duties that they hold.

use engine::time::Timestamp;
use tokio_postgres::Row;

use crate::{
    duty::{Duty, EngineId},
    postgres::{
        fault::Fault,
        table::{Column, Table},
        values::{Cell, Kind, Moment, column, unsigned},
    },
};

/// The lease of an engine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct EngineRow {
    pub(crate) version: u64,
    pub(crate) since: Timestamp,
    pub(crate) until: Timestamp,
}

impl Table for EngineRow {
    type Key = EngineId;

    const NAME: &'static str = "engines";
    const KEY: &'static [Column] = &[("id", Kind::Integer)];
    const VALUES: &'static [Column] = &[("version", Kind::Integer), ("since", Kind::Time), ("until", Kind::Time)];
    const READ: &'static [&'static str] = &["version", "since", "until"];
    const GUARD: Option<&'static str> = Some("version");

    fn key_cells(key: &EngineId) -> Vec<Cell> {
        vec![engine_cell(*key)]
    }

    fn cells(&self) -> Vec<Cell> {
        vec![self.version.into(), self.since.into(), self.until.into()]
    }

    fn guard(&self) -> u64 {
        self.version
    }

    fn read(row: &Row) -> Result<(EngineId, Self), Fault> {
        let (Moment(since), Moment(until)) = (column(row, 2)?, column(row, 3)?);
        Ok((engine_of(column(row, 0)?), Self { version: unsigned(column(row, 1)?), since, until }))
    }
}

/// Returns the id of an engine as a column holds it: its bits, whatever their sign.
fn engine_cell(engine: EngineId) -> Cell {
    Cell::Integer(Some(engine.bits().cast_signed()))
}

/// Returns the engine of a column.
pub(crate) const fn engine_of(bits: i64) -> EngineId {
    EngineId::from_bits(bits.cast_unsigned())
}

/// The holder of a duty. The term only grows, which guards the row.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct DutyRow {
    pub(crate) term: u64,
    pub(crate) holder: Option<EngineId>,
}

impl Table for DutyRow {
    type Key = Duty;

    const NAME: &'static str = "duties";
    const KEY: &'static [Column] = &[("name", Kind::Text)];
    const VALUES: &'static [Column] = &[("term", Kind::Integer), ("holder", Kind::Integer)];
    const READ: &'static [&'static str] = &["term", "holder"];
    const GUARD: Option<&'static str> = Some("term");

    fn key_cells(key: &Duty) -> Vec<Cell> {
        vec![Cell::Text(key.to_string())]
    }

    fn cells(&self) -> Vec<Cell> {
        vec![self.term.into(), self.holder.map_or(Cell::Integer(None), engine_cell)]
    }

    fn guard(&self) -> u64 {
        self.term
    }

    fn read(row: &Row) -> Result<(Duty, Self), Fault> {
        let name: &str = column(row, 0)?;
        let duty = Duty::parse(name).ok_or_else(|| Fault::inconsistent("duties", name, "there is no such duty"))?;
        let holder = column::<Option<i64>>(row, 2)?.map(engine_of);
        Ok((duty, Self { term: unsigned(column(row, 1)?), holder }))
    }
}
