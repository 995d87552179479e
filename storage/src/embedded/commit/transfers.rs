//! The transfers of payments: rows by payment, transaction and operation, listed in the order in which they were first
//! seen. A payment's record lists only a few of them and holds totals of the others.

use engine::mutant;

use crate::{
    embedded::{
        commit::{
            group::{Checked, Group, Overlay, conflict},
            ledger_entries,
            prepared::TransferStep,
        },
        fault::Fault,
        read::{search, transfers::read},
    },
    record::{self, transfer::transfer_key},
};

/// Checks that a new transfer has a new sequence number, and that an existing one keeps its sequence number. The
/// version of its payment, which the same batch writes, detects other writers.
pub(crate) fn check(group: &mut Group<'_>, step: &mut TransferStep, overlay: &mut Overlay) -> Checked {
    if !overlay.payments.contains_key(&step.payment.bits()) {
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
    let is_first = overlay.transfers.keys.insert(key) && overlay.transfers.places.insert(place);
    let is_sound = (is_its_place && is_first) || mutant!("transfers-not-deduped");
    if !is_sound {
        return conflict(format_args!("transfer {} of payment {}", credit.tx_id, step.payment));
    }
    step.is_new = stored.is_none();
    if let Some(stored) = stored {
        // The memo in the payment's list is truncated for display.
        credit.memo = stored.memo;
    }
    Ok(Ok(()))
}

/// Writes a checked transfer, its ledger entry once it is irreversible, and the search words of its payment.
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
