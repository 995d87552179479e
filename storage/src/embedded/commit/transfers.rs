//! The transfers of payments: rows of their own, found by payment, transaction and operation, and listed in the order in
//! which they became known. A payment's record lists few of them and keeps the totals of the others.

use std::{collections::BTreeSet, ops::Bound};

use engine::{
    ids::{MerchantId, PaymentId},
    ledger::TxId,
    mutant,
    payment::Credit,
};

use crate::{
    embedded::{
        commit::{
            apply::{self, Checked, Group, conflict},
            ledger_entries,
        },
        fault::Fault,
        read::search,
        wal::snapshot::Snapshot,
    },
    record::{self, TransferKey, transfer_key},
};

/// A transfer to write.
#[derive(Debug)]
pub(crate) struct TransferStep {
    pub(crate) payment: PaymentId,
    pub(crate) merchant: MerchantId,
    pub(crate) credit: Credit,
    /// Whether it was not there before; filled in by the writer's check.
    is_new: bool,
}

impl TransferStep {
    /// Writes a transfer of a merchant's payment.
    pub(crate) const fn of(payment: PaymentId, merchant: MerchantId, credit: Credit) -> Self {
        Self { payment, merchant, credit, is_new: false }
    }
}

/// The transfers that earlier steps of a batch write: each is written once.
#[derive(Default)]
pub(crate) struct Ahead {
    keys: BTreeSet<(u128, [u8; 20], u32)>,
    places: BTreeSet<(u128, u64)>,
}

/// Checks that a transfer is the one it was decided about: a new one has a place of its own, a changed one keeps its
/// place. The version of its payment, which the same batch writes, guards against other writers.
pub(crate) fn check(group: &mut Group<'_>, step: &mut TransferStep, ahead: &mut apply::Ahead) -> Checked {
    if !ahead.payments.contains_key(&step.payment.bits()) {
        return conflict(format_args!("payment {}, which the batch does not write", step.payment));
    }
    let credit = &mut step.credit;
    let key = transfer_key(step.payment, &credit.tx_id, credit.op_in_tx);
    let stored = match group.tables.transfers().get(key)? {
        Some(bytes) => Some(read(key, bytes.value())?),
        None => None,
    };
    let place = (step.payment.bits(), credit.seq);
    let is_its_place = match &stored {
        Some(stored) => stored.seq == credit.seq,
        None => group.tables.transfer_order().get(place)?.is_none(),
    };
    let key = (step.payment.bits(), credit.tx_id.0, credit.op_in_tx);
    let is_first = ahead.transfers.keys.insert(key) && ahead.transfers.places.insert(place);
    let is_sound = (is_its_place && is_first) || mutant!("transfers-not-deduped");
    if !is_sound {
        return conflict(format_args!("transfer {} of payment {}", credit.tx_id, step.payment));
    }
    step.is_new = stored.is_none();
    if let Some(stored) = stored {
        // What was decided about was cut to what is shown.
        credit.memo = stored.memo;
    }
    Ok(Ok(()))
}

/// Writes a transfer that was checked, and what follows from it: a ledger entry once it is irreversible, and the words
/// by which its payment is found.
pub(crate) fn write(group: &mut Group<'_>, step: &TransferStep) -> Result<(), Fault> {
    let TransferStep { payment, merchant, credit, is_new } = step;
    let key = transfer_key(*payment, &credit.tx_id, credit.op_in_tx);
    group.tables.transfers().insert(key, record::transfer_to_bytes(credit).as_slice());
    if *is_new {
        group.tables.transfer_order().insert((payment.bits(), credit.seq), (&credit.tx_id.0, credit.op_in_tx));
        let words = group.tables.search();
        for word in search::transfer_words_of(credit) {
            words.insert((merchant.bits(), word.as_str(), payment.bits()), ());
        }
    }
    ledger_entries::of_transfer(*payment, credit).iter().try_for_each(|line| ledger_entries::write(group, line))
}

fn read(key: TransferKey<'_>, bytes: &[u8]) -> Result<Credit, Fault> {
    record::transfer_from_bytes(key, bytes)
        .map_err(Fault::damaged("transfers", format!("{} of {}", TxId(*key.1), PaymentId::from_bits(key.0))))
}

/// Returns a payment's transfer, with the whole memo.
pub(crate) fn one(
    snapshot: &Snapshot,
    payment: PaymentId,
    tx_id: TxId,
    op_in_tx: u32,
) -> Result<Option<Credit>, Fault> {
    let key = transfer_key(payment, &tx_id, op_in_tx);
    snapshot.transfers().get(key)?.map(|bytes| read(key, bytes.value())).transpose()
}

/// Returns a payment's transfers, newest first, before the place `before`, at most `limit`, with their whole memos; damaged
/// ones are noted and passed over.
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
                Err(Fault::contradicted("transfers", name, "it is listed and not there"))
            }
        });
        found.extend(rows.pass(row)?);
    }
    Ok(found)
}
