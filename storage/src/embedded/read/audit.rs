//! Reads of the audit log.

use engine::{audit::Entry, ids::MerchantId};

use crate::{
    embedded::{fault::Fault, wal::snapshot::Snapshot},
    record,
    store::audit::AuditQuery,
};

/// Returns entries of the audit log, newest first.
pub(crate) fn audit(snapshot: &Snapshot, query: &AuditQuery) -> Result<Vec<Entry>, Fault> {
    let log = snapshot.audit();
    let last = match query.before {
        Some(0) => return Ok(Vec::new()),
        before => before.map_or(u64::MAX, |before| before - 1),
    };
    let read = |seq: u64, bytes: &[u8]| {
        log.skip_damaged(record::audit_from_bytes(seq, bytes).map_err(Fault::damaged("audit", seq)))
    };
    let mut found = Vec::new();
    if let Some(merchant) = query.merchant.map(MerchantId::bits) {
        for row in snapshot.audit_by_merchant().range((merchant, 0)..=(merchant, last))?.rev() {
            if found.len() >= query.limit {
                break;
            }
            let (_, seq) = row?.0.value();
            let Some(bytes) = log.get_intact(seq)? else { continue };
            found.extend(read(seq, bytes.value())?);
        }
        return Ok(found);
    }
    for row in log.range::<u64>(..=last)?.rev() {
        if found.len() >= query.limit {
            break;
        }
        let (seq, bytes) = row?;
        found.extend(read(seq.value(), bytes.value())?);
    }
    Ok(found)
}
