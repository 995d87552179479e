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

/// Returns a claim by its transaction.
pub(crate) fn find(snapshot: &Snapshot, tx_id: TxId) -> Result<Option<ClaimRecord>, Fault> {
    match snapshot.claims().get(&tx_id.0)? {
        Some(bytes) => {
            record::claimed_from_bytes(tx_id, bytes.value()).map(Some).map_err(Fault::damaged("claims", tx_id))
        }
        None => Ok(None),
    }
}
