//! Reads of duties and leases.

use engine::time::Timestamp;

use crate::{
    embedded::{fault::Fault, wal::snapshot::Snapshot},
    store::duties::{Duty, DutyRecord, EngineId, EngineLease, Membership},
};

/// Returns the engines with a lease.
pub(crate) fn leases(snapshot: &Snapshot) -> Result<Vec<EngineLease>, Fault> {
    let mut leases = Vec::new();
    for entry in snapshot.engines().iter()? {
        let (engine, lease) = entry?;
        let (since_ms, until_ms) = lease.value();
        let (since, until) = (Timestamp::from_millis(since_ms), Timestamp::from_millis(until_ms));
        leases.push(EngineLease { engine: EngineId::from_bits(engine.value()), since, until });
    }
    Ok(leases)
}

/// Returns the engines with a lease, and the holders of duties.
pub(crate) fn membership(snapshot: &Snapshot) -> Result<Membership, Fault> {
    let mut membership = Membership { engines: leases(snapshot)?, duties: Vec::new() };
    for entry in snapshot.duties().iter()? {
        let (name, held) = entry?;
        let (term, holder) = held.value();
        // The name is checked by the verification of the store.
        let Some(duty) = Duty::parse(name.value()) else { continue };
        let holder = (holder != 0).then(|| EngineId::from_bits(holder));
        membership.duties.push(DutyRecord { duty, holder, term });
    }
    Ok(membership)
}
