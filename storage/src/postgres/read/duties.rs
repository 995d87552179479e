//! Reads of the engines that have a lease, and of the holders of duties.

use crate::{
    postgres::{
        fault::Fault,
        readers::Readers,
        table::Table,
        tables::duties::{DutyRow, EngineRow, engine_of},
        values::{Moment, column, unsigned},
    },
    store::duties::{DutyRecord, EngineLease, Membership},
};

/// Returns the engines that have a lease.
pub(crate) async fn leases(readers: &Readers) -> Result<Vec<EngineLease>, Fault> {
    let rows = readers.query("SELECT id, version, since, until FROM engines ORDER BY id", &[]).await?;
    let lease = |row| {
        let (engine, EngineRow { since, until, .. }) = EngineRow::read(row)?;
        Ok(EngineLease { engine, since, until })
    };
    rows.iter().map(lease).collect()
}

/// Returns the engines that have a lease and the holders of duties, from one snapshot.
pub(crate) async fn membership(readers: &Readers) -> Result<Membership, Fault> {
    let sql = "SELECT d.name, d.term, d.holder, NULL::bigint, NULL::timestamptz, NULL::timestamptz FROM duties d \
               UNION ALL SELECT NULL, NULL, NULL, e.id, e.since, e.until FROM engines e ORDER BY 1, 4";
    let mut membership = Membership::default();
    for row in &readers.query(sql, &[]).await? {
        if let Some(engine) = column::<Option<i64>>(row, 3)?.map(engine_of) {
            let (Moment(since), Moment(until)) = (column(row, 4)?, column(row, 5)?);
            membership.engines.push(EngineLease { engine, since, until });
            continue;
        }
        let Some((duty, _)) = readers.pass(DutyRow::read(row))? else { continue };
        let holder = column::<Option<i64>>(row, 2)?.map(engine_of);
        membership.duties.push(DutyRecord { duty, holder, term: unsigned(column(row, 1)?) });
    }
    Ok(membership)
}
