//! Reads of the transfers of payments.

use std::ops::Bound;

use engine::{ids::PaymentId, ledger::TxId, payment::Credit};

use crate::{
    embedded::{fault::Fault, wal::snapshot::Snapshot},
    record::{
        self,
        transfer::{TransferKey, transfer_key},
    },
};

pub(crate) fn read(key: TransferKey<'_>, bytes: &[u8]) -> Result<Credit, Fault> {
    record::transfer_from_bytes(key, bytes)
        .map_err(Fault::damaged("transfers", format!("{} of {}", TxId(*key.1), PaymentId::from_bits(key.0))))
}

/// Returns a payment's transfer, with its full memo.
pub(crate) fn one(
    snapshot: &Snapshot,
    payment: PaymentId,
    tx_id: TxId,
    op_in_tx: u32,
) -> Result<Option<Credit>, Fault> {
    let key = transfer_key(payment, &tx_id, op_in_tx);
    snapshot.transfers().get(key)?.map(|bytes| read(key, bytes.value())).transpose()
}

/// Returns at most `limit` of a payment's transfers before the sequence number `before`, newest first, with their full
/// memos. Damaged ones are recorded and skipped.
pub(crate) fn page(
    snapshot: &Snapshot,
    payment: PaymentId,
    before: Option<u64>,
    limit: usize,
) -> Result<Vec<Credit>, Fault> {
    let bits = payment.bits();
    let end = before.map_or(Bound::Included((bits, u64::MAX)), |before| Bound::Excluded((bits, before)));
    let rows = snapshot.transfers();
    let mut found = Vec::new();
    for entry in snapshot.transfer_order().range::<(u128, u64)>((Bound::Included((bits, 0)), end))?.rev().take(limit) {
        let (place, value) = entry?;
        let (tx_id, op_in_tx) = value.value();
        let key = (bits, tx_id, op_in_tx);
        let row = rows.get(key).and_then(|row| match row {
            Some(bytes) => read(key, bytes.value()),
            None => {
                let name = format!("{} of {payment}", place.value().1);
                Err(Fault::inconsistent("transfers", name, "it is listed but missing"))
            }
        });
        found.extend(rows.skip_damaged(row)?);
    }
    Ok(found)
}
