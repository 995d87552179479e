//! Checks and writes of leases and duties.

use std::collections::BTreeMap;

use engine::time::Timestamp;

use crate::{
    batch::CommitError,
    embedded::{
        commit::group::{Checked, Group, Overlay, conflict},
        fault::Fault,
    },
    store::duties::{Duty, EngineId},
};

/// A change of the leases and duties, as earlier steps of a batch leave them.
#[derive(Default)]
pub(crate) struct DutyOverlay {
    /// Until when leases last; none where one was ended.
    leases: BTreeMap<u64, Option<u64>>,
    /// Terms and holders.
    duties: BTreeMap<Duty, (u64, u64)>,
}

/// Returns until when an engine's lease lasts.
fn lease(group: &Group<'_>, engine: EngineId, overlay: &Overlay) -> Result<Option<u64>, Fault> {
    match overlay.duties.leases.get(&engine.bits()) {
        Some(until) => Ok(*until),
        None => Ok(group.tables.engines().get(engine.bits())?.map(|lease| lease.value().1)),
    }
}

/// Returns a duty's term and holder; 0 where it was never taken.
fn holder(group: &Group<'_>, duty: Duty, overlay: &Overlay) -> Result<(u64, u64), Fault> {
    match overlay.duties.duties.get(&duty) {
        Some(found) => Ok(*found),
        None => {
            let found = group.tables.duties().get(duty.to_string().as_str())?;
            Ok(found.map_or((0, 0), |found| found.value()))
        }
    }
}

/// Refuses a new lease of an engine that has one, and a renewal for one that has none.
pub(crate) fn check_lease(
    group: &Group<'_>,
    engine: EngineId,
    is_new: bool,
    until: Timestamp,
    overlay: &mut Overlay,
) -> Checked {
    if lease(group, engine, overlay)?.is_none() != is_new {
        return conflict(format_args!("the lease of engine {engine}"));
    }
    overlay.duties.leases.insert(engine.bits(), Some(until.millis()));
    Ok(Ok(()))
}

/// Refuses the end of a lease that another engine still has.
pub(crate) fn check_end(
    group: &Group<'_>,
    engine: EngineId,
    by: EngineId,
    now: Timestamp,
    overlay: &mut Overlay,
) -> Checked {
    let is_over = match lease(group, engine, overlay)? {
        Some(until) => by == engine || until <= now.millis(),
        None => false,
    };
    if !is_over {
        return conflict(format_args!("the lease of engine {engine}"));
    }
    overlay.duties.leases.insert(engine.bits(), None);
    Ok(Ok(()))
}

/// Refuses a change of a duty that has another term, or whose holder is another engine with a lease.
pub(crate) fn check_duty(
    group: &Group<'_>,
    duty: Duty,
    engine: EngineId,
    is_taken: bool,
    expected: u64,
    overlay: &mut Overlay,
) -> Checked {
    let (term, holder) = holder(group, duty, overlay)?;
    let is_own = holder == engine.bits();
    let is_free = holder == 0 || lease(group, EngineId::from_bits(holder), overlay)?.is_none();
    if term != expected || !(is_own || is_taken && is_free) {
        return conflict(format_args!("the duty {duty}"));
    }
    if lease(group, engine, overlay)?.is_none() {
        return conflict(format_args!("the lease of engine {engine}"));
    }
    overlay.duties.duties.insert(duty, (term + 1, if is_taken { engine.bits() } else { 0 }));
    Ok(Ok(()))
}

/// Refuses a batch on a duty that has passed on.
pub(crate) fn check_term(group: &Group<'_>, duty: Duty, term: u64, overlay: &Overlay) -> Checked {
    if holder(group, duty, overlay)?.0 == term { Ok(Ok(())) } else { Ok(Err(CommitError::Deposed(duty))) }
}

/// Writes a lease: a new one begins now.
pub(crate) fn write_lease(
    group: &Group<'_>,
    engine: EngineId,
    is_new: bool,
    now: Timestamp,
    until: Timestamp,
) -> Result<(), Fault> {
    let engines = group.tables.engines();
    let since = match engines.get(engine.bits())? {
        Some(lease) if !is_new => lease.value().0,
        _ => now.millis(),
    };
    engines.insert(engine.bits(), (since, until.millis()));
    Ok(())
}

/// Removes a lease.
pub(crate) fn end_lease(group: &Group<'_>, engine: EngineId) -> Result<(), Fault> {
    Ok(group.tables.engines().remove(engine.bits())?)
}

/// Writes who holds a duty from now on; none where it is released.
pub(crate) fn write_duty(group: &Group<'_>, duty: Duty, engine: EngineId, is_taken: bool, expected: u64) {
    let holder = if is_taken { engine.bits() } else { 0 };
    group.tables.duties().insert(duty.to_string().as_str(), (expected + 1, holder));
}
