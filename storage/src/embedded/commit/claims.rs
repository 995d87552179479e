//! Claims: found by their keys; those for other servers that nobody here asked for are forgotten, so that strangers do not
//! fill the disk.

use crate::{
    embedded::{
        commit::{
            group::{Checked, Group, Overlay, conflict},
            prepared,
        },
        fault::Fault,
    },
    record,
};
use engine::{ledger::TxId, x402::ClaimRecord};

/// Checks that each claim may be forgotten, and adds the keys of its nonce and its identifier to `names`.
pub(crate) fn check(
    group: &mut Group<'_>,
    tx_ids: &[TxId],
    names: &mut Vec<[u8; 32]>,
    overlay: &mut Overlay,
) -> Checked {
    for tx_id in tx_ids {
        let is_changed = overlay.claims.contains_key(&tx_id.0) || overlay.forgotten_claims.contains(&tx_id.0);
        let stored = stored(group, tx_id.0)?.filter(|claimed| !is_changed && claimed.is_forgettable());
        let Some(claimed) = stored else { return conflict(format_args!("the claim of {tx_id}")) };
        names.extend(prepared::names_of(&claimed));
    }
    overlay.forgotten_claims.extend(tx_ids.iter().map(|tx_id| tx_id.0));
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

/// Returns a claim as the writer's tables have it.
pub(crate) fn stored(group: &Group<'_>, tx_id: [u8; 20]) -> Result<Option<ClaimRecord>, Fault> {
    match group.tables.claims().get(&tx_id)? {
        Some(bytes) => {
            let tx_id = TxId(tx_id);
            record::claimed_from_bytes(tx_id, bytes.value()).map(Some).map_err(Fault::damaged("claims", tx_id))
        }
        None => Ok(None),
    }
}
