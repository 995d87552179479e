//! Reads of idempotency keys.

use engine::{idempotency::IdempotencyRecord, ids::MerchantId, time::Timestamp};

use crate::{
    embedded::{fault::Fault, wal::snapshot::Snapshot},
    record,
};

/// Returns the record of a stored key.
pub(crate) fn find(
    snapshot: &Snapshot,
    merchant: MerchantId,
    key: [u8; 32],
) -> Result<Option<IdempotencyRecord>, Fault> {
    match snapshot.idempotency().get((merchant.bits(), &key))? {
        Some(bytes) => record::idempotency_from_bytes(merchant, key, bytes.value())
            .map(Some)
            .map_err(Fault::damaged("idempotency", merchant)),
        None => Ok(None),
    }
}

/// Returns when the oldest stored key was created.
pub(crate) fn oldest(snapshot: &Snapshot) -> Result<Option<Timestamp>, Fault> {
    let times = snapshot.idempotency_times();
    let oldest = times.first()?;
    Ok(oldest.map(|(time, _)| Timestamp::from_millis(time.value().0)))
}
