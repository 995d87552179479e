//! Reads of claims.

use std::ops::Bound;

use engine::{ledger::TxId, time::Timestamp, x402::ClaimRecord};

use crate::{
    embedded::{fault::Fault, wal::snapshot::Snapshot},
    record,
};

/// Returns, among the `limit` claims after `after`, those that can be deleted and whose transactions expired before
/// `expired_before`; and the claim to continue after.
pub(crate) fn forgettable(
    snapshot: &Snapshot,
    expired_before: Timestamp,
    after: Option<TxId>,
    limit: usize,
) -> Result<(Vec<ClaimRecord>, Option<TxId>), Fault> {
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
        found.extend(
            claims
                .skip_damaged(read)?
                .filter(|claimed| claimed.is_forgettable() && claimed.expired_before(expired_before)),
        );
    }
    Ok((found, None))
}

/// Returns a claim by the key of its nonce or identifier.
pub(crate) fn named(snapshot: &Snapshot, name: &[u8; 32]) -> Result<Option<ClaimRecord>, Fault> {
    match snapshot.nonces().get(name)? {
        Some(tx_id) => find(snapshot, TxId(*tx_id.value())),
        None => Ok(None),
    }
}

/// Returns the claims of some transactions. Damaged records are skipped.
pub(crate) fn of(snapshot: &Snapshot, tx_ids: &[TxId]) -> Result<Vec<ClaimRecord>, Fault> {
    let claims = snapshot.claims();
    let mut found = Vec::new();
    for tx_id in tx_ids {
        found.extend(claims.skip_damaged(find(snapshot, *tx_id))?.flatten());
    }
    Ok(found)
}

/// Returns the first claim of some transactions, or else the first one with one of some unique keys.
pub(crate) fn overlapping(
    snapshot: &Snapshot,
    tx_ids: &[TxId],
    keys: impl IntoIterator<Item = [u8; 32]>,
) -> Result<Option<ClaimRecord>, Fault> {
    for tx_id in tx_ids {
        if let Some(claimed) = find(snapshot, *tx_id)? {
            return Ok(Some(claimed));
        }
    }
    for key in keys {
        if let Some(claimed) = named(snapshot, &key)? {
            return Ok(Some(claimed));
        }
    }
    Ok(None)
}

/// Returns a claim by its transaction.
pub(crate) fn find(snapshot: &Snapshot, tx_id: TxId) -> Result<Option<ClaimRecord>, Fault> {
    match snapshot.claims().get(&tx_id.0)? {
        Some(bytes) => {
            record::claimed_from_bytes(tx_id, bytes.value()).map(Some).map_err(Fault::damaged("claims", tx_id))
        }
        None => Ok(None),
    }
}
