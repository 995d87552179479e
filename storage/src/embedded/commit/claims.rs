//! Claims: found by their keys; those for other servers that nobody here asked for are forgotten, so that strangers do not
//! fill the disk.

use std::ops::Bound;

use engine::{ledger::TxId, time::Timestamp};

use crate::{
    Claimed, Purpose,
    embedded::{
        commit::{
            apply::{Ahead, Checked, Group, conflict},
            prepared,
        },
        fault::Fault,
        wal::snapshot::Snapshot,
    },
    record,
};

/// Checks that each claim may be forgotten, and adds the keys of its nonce and its identifier to `names`.
pub(crate) fn check(group: &mut Group<'_>, tx_ids: &[TxId], names: &mut Vec<[u8; 32]>, ahead: &mut Ahead) -> Checked {
    for tx_id in tx_ids {
        let is_changed = ahead.claims.contains_key(&tx_id.0) || ahead.forgotten_claims.contains(&tx_id.0);
        let stored = stored(group, tx_id.0)?.filter(|claimed| !is_changed && claimed.is_forgettable());
        let Some(claimed) = stored else { return conflict(format_args!("the claim of {tx_id}")) };
        names.extend(prepared::names_of(&claimed));
    }
    ahead.forgotten_claims.extend(tx_ids.iter().map(|tx_id| tx_id.0));
    Ok(Ok(()))
}

/// Removes claims with their names.
pub(crate) fn forget(group: &mut Group<'_>, tx_ids: &[TxId], names: &[[u8; 32]]) -> Result<(), Fault> {
    for tx_id in tx_ids {
        group.tables.claims().remove(&tx_id.0)?;
    }
    for name in names {
        group.tables.nonces().remove(name)?;
    }
    Ok(())
}

/// Returns claims that may be forgotten and whose transactions expired before `expired_before`, among the `limit` claims
/// after `after`, and where the walk goes on.
pub(crate) fn forgettable(
    snapshot: &Snapshot,
    expired_before: Timestamp,
    after: Option<TxId>,
    limit: usize,
) -> Result<(Vec<Claimed>, Option<TxId>), Fault> {
    let (mut found, mut last) = (Vec::new(), None);
    let low = after.as_ref().map_or(Bound::Unbounded, |after| Bound::Excluded(&after.0));
    let claims = snapshot.claims();
    for (passed, entry) in claims.range::<&[u8; 20]>((low, Bound::Unbounded))?.enumerate() {
        if passed == limit {
            return Ok((found, last));
        }
        let (key, bytes) = entry?;
        let tx_id = TxId(*key.value());
        last = Some(tx_id);
        let read = record::claimed_from_bytes(tx_id, bytes.value()).map_err(Fault::damaged("claims", tx_id));
        found.extend(claims.pass(read)?.filter(|claimed| is_past(claimed, expired_before)));
    }
    Ok((found, None))
}

/// Says whether a claim may be forgotten, and the chain takes its transaction no more since before `expired_before`.
fn is_past(claimed: &Claimed, expired_before: Timestamp) -> bool {
    match &claimed.purpose {
        Purpose::Facilitated(facilitation) => facilitation.expiration < expired_before && claimed.is_forgettable(),
        Purpose::Session(_) => false,
    }
}

/// Finds a claim by the key of its nonce or identifier.
pub(crate) fn named(snapshot: &Snapshot, name: &[u8; 32]) -> Result<Option<Claimed>, Fault> {
    match snapshot.nonces().get(name)? {
        Some(tx_id) => find(snapshot, TxId(*tx_id.value())),
        None => Ok(None),
    }
}

/// Finds a claim by its transaction.
pub(crate) fn find(snapshot: &Snapshot, tx_id: TxId) -> Result<Option<Claimed>, Fault> {
    match snapshot.claims().get(&tx_id.0)? {
        Some(bytes) => {
            record::claimed_from_bytes(tx_id, bytes.value()).map(Some).map_err(Fault::damaged("claims", tx_id))
        }
        None => Ok(None),
    }
}

/// Returns a claim as the writer's tables have it.
pub(crate) fn stored(group: &Group<'_>, tx_id: [u8; 20]) -> Result<Option<Claimed>, Fault> {
    match group.tables.claims().get(&tx_id)? {
        Some(bytes) => {
            let tx_id = TxId(tx_id);
            record::claimed_from_bytes(tx_id, bytes.value()).map(Some).map_err(Fault::damaged("claims", tx_id))
        }
        None => Ok(None),
    }
}
