//! Reads of deadlines.

use std::ops::Bound;

use engine::{ids::PaymentId, time::Timestamp};

use crate::embedded::{fault::Fault, wal::snapshot::Snapshot};

/// Returns pending payments whose deadline is before `before`, earliest first.
pub(crate) fn due(
    snapshot: &Snapshot,
    before: Timestamp,
    after: Option<(Timestamp, PaymentId)>,
    limit: usize,
) -> Result<Vec<(Timestamp, PaymentId)>, Fault> {
    let end = (before.millis(), 0);
    let start = match after.map(|(deadline, id)| (deadline.millis(), id.bits())) {
        Some(after) if after >= end => return Ok(Vec::new()),
        Some(after) => Bound::Excluded(after),
        None => Bound::Unbounded,
    };
    snapshot
        .deadlines()
        .range::<(u64, u128)>((start, Bound::Excluded(end)))?
        .take(limit)
        .map(|entry| {
            let (deadline_ms, id) = entry?.0.value();
            Ok((Timestamp::from_millis(deadline_ms), PaymentId::from_bits(id)))
        })
        .collect()
}
