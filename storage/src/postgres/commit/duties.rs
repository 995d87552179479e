//! Leases of engines and the duties that they hold. Leases are measured by the clock of the database.

use std::time::Duration;

use crate::{
    batch::CommitError,
    duty::{Duty, EngineId},
    postgres::{
        commit::working::{Checked, Working, conflict},
        tables::duties::{DutyRow, EngineRow},
    },
};

/// Begins or renews a lease.
pub(crate) fn lease(working: &mut Working, engine: EngineId, is_new: bool, duration: Duration) -> Checked {
    let stored = working.engines.get(&engine).copied();
    if stored.is_none() != is_new {
        return conflict(format_args!("the lease of engine {engine}"));
    }
    let (since, version) = stored.map_or((working.now, 0), |row| (row.since, row.version));
    // A row that is made again has another version than any before it: the version begins with the time.
    let version = if version == 0 { working.now.millis().max(1) } else { version + 1 };
    working.engines.put(engine, EngineRow { version, since, until: working.now + duration });
    Ok(Ok(()))
}

/// Ends a lease that has expired, or that its own engine ends.
pub(crate) fn end_lease(working: &mut Working, engine: EngineId, by: EngineId) -> Checked {
    let is_over = working.engines.get(&engine).is_some_and(|row| by == engine || row.until <= working.now);
    if !is_over {
        return conflict(format_args!("the lease of engine {engine}"));
    }
    working.engines.set(engine, None);
    Ok(Ok(()))
}

/// Takes or releases a duty that has the expected term and that no other engine with a lease holds.
pub(crate) fn take(working: &mut Working, duty: Duty, engine: EngineId, is_taken: bool, expected: u64) -> Checked {
    let DutyRow { term, holder } = working.duties.get(&duty).copied().unwrap_or_default();
    let is_own = holder == Some(engine);
    let is_free = holder.is_none_or(|holder| working.engines.get(&holder).is_none());
    if term != expected || !(is_own || is_taken && is_free) {
        return conflict(format_args!("the duty {duty}"));
    }
    if working.engines.get(&engine).is_none() {
        return conflict(format_args!("the lease of engine {engine}"));
    }
    working.engines.lock(engine);
    working.duties.put(duty, DutyRow { term: term + 1, holder: is_taken.then_some(engine) });
    Ok(Ok(()))
}

/// Rejects a batch on a duty that has another term.
pub(crate) fn on_duty(working: &mut Working, duty: Duty, term: u64) -> Checked {
    if working.duties.get(&duty).copied().unwrap_or_default().term != term {
        return Ok(Err(CommitError::Deposed(duty)));
    }
    working.duties.lock(duty);
    Ok(Ok(()))
}
