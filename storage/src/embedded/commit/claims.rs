//! Claims and the indexes of their nonces and identifiers. Claims for other servers that no merchant requested are
//! pruned, so that strangers cannot fill the disk.

use engine::{
    ledger::TxId,
    x402::{ClaimOutcome, ClaimRecord, Purpose},
};

use crate::{
    batch::CommitError,
    embedded::{
        commit::{
            group::{Checked, Group, Overlay, conflict},
            prepared,
        },
        fault::Fault,
    },
    record,
};
/// Checks that each claim can be pruned, and adds the keys of its nonce and its identifier to `names`.
pub(crate) fn check(
    group: &mut Group<'_>,
    tx_ids: &[TxId],
    names: &mut Vec<[u8; 32]>,
    overlay: &mut Overlay,
) -> Checked {
    for tx_id in tx_ids {
        let is_changed = overlay.claims.contains_key(&tx_id.0) || overlay.deleted_claims.contains(&tx_id.0);
        let stored = stored(group, tx_id.0)?.filter(|claimed| !is_changed && claimed.is_forgettable());
        let Some(claimed) = stored else { return conflict(format_args!("the claim of {tx_id}")) };
        names.extend(prepared::unique_keys(&claimed));
    }
    overlay.deleted_claims.extend(tx_ids.iter().map(|tx_id| tx_id.0));
    Ok(Ok(()))
}

/// Deletes claims with the keys of their nonces and identifiers.
pub(crate) fn forget(group: &mut Group<'_>, tx_ids: &[TxId], names: &[[u8; 32]]) -> Result<(), Fault> {
    for tx_id in tx_ids {
        group.tables.claims().remove(&tx_id.0)?;
    }
    for name in names {
        group.tables.nonces().remove(name)?;
    }
    Ok(())
}

/// Checks that the stored outcome of a claim is `expected`; returns the record with the new outcome.
pub(crate) fn check_outcome(
    group: &Group<'_>,
    tx_id: TxId,
    expected: &ClaimOutcome,
    outcome: &ClaimOutcome,
    overlay: &mut Overlay,
) -> Checked<ClaimRecord> {
    let current = current(group, tx_id, overlay)?.filter(|_| !overlay.deleted_claims.contains(&tx_id.0));
    let Some(claimed) = current.filter(|claimed| claimed.outcome == *expected) else {
        return conflict(format_args!("the outcome of {tx_id}"));
    };
    let claimed = ClaimRecord { outcome: outcome.clone(), ..claimed };
    overlay.claims.insert(tx_id.0, claimed.clone());
    Ok(Ok(claimed))
}

/// Checks that a transaction has no claim for another server: its transfer cannot also pay a session.
pub(crate) fn check_not_facilitated(group: &Group<'_>, tx_id: TxId, overlay: &Overlay) -> Checked {
    match current(group, tx_id, overlay)?.filter(|claimed| claimed.sale().is_some()) {
        Some(claimed) => Ok(Err(CommitError::Claimed(Box::new(claimed)))),
        None => Ok(Ok(())),
    }
}

/// Writes a new claim, with the keys of its nonce and its identifier.
pub(crate) fn write(group: &mut Group<'_>, claimed: &ClaimRecord, names: &[[u8; 32]]) {
    let tx_id = claimed.tx_id.0;
    group.tables.claims().insert(&tx_id, record::claimed_to_bytes(claimed).as_slice());
    if matches!(claimed.purpose, Purpose::Facilitated(_)) && claimed.outcome.is_open() {
        group.tables.facilitations().insert(&tx_id, ());
    }
    for name in names {
        group.tables.nonces().insert(name, &tx_id);
    }
}

/// Writes a claim whose outcome changed. Only open facilitations are listed as open.
pub(crate) fn write_outcome(
    group: &mut Group<'_>,
    tx_id: TxId,
    outcome: &ClaimOutcome,
    record: &[u8],
    is_facilitation: bool,
) -> Result<(), Fault> {
    group.tables.claims().insert(&tx_id.0, record);
    match (is_facilitation, outcome) {
        (true, ClaimOutcome::Open | ClaimOutcome::Shared) => group.tables.facilitations().insert(&tx_id.0, ()),
        (true, _) => group.tables.facilitations().remove(&tx_id.0)?,
        (false, _) => {}
    }
    Ok(())
}

/// Returns a claim, including the changes of earlier steps of the batch.
fn current(group: &Group<'_>, tx_id: TxId, overlay: &Overlay) -> Result<Option<ClaimRecord>, Fault> {
    match overlay.claims.get(&tx_id.0) {
        Some(claimed) => Ok(Some(claimed.clone())),
        None => stored(group, tx_id.0),
    }
}

/// Returns a claim from the writer's tables.
pub(crate) fn stored(group: &Group<'_>, tx_id: [u8; 20]) -> Result<Option<ClaimRecord>, Fault> {
    match group.tables.claims().get(&tx_id)? {
        Some(bytes) => {
            let tx_id = TxId(tx_id);
            record::claimed_from_bytes(tx_id, bytes.value()).map(Some).map_err(Fault::damaged("claims", tx_id))
        }
        None => Ok(None),
    }
}
