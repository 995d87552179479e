//! Invariants of the scanner's cursor.

use super::*;

pub(super) fn cursor_goes_forward(write: &CursorWrite<'_>) -> Verdict {
    let (from, to) = (write.from.block_id.number(), write.to.block_id.number());
    hold(to > from, || format!("the cursor went from {from} to {to}"))?;
    let last = write.observer.final_num;
    hold(to <= last, || format!("the cursor went to {to}, and {last} is the newest irreversible block"))
}

pub(super) fn nothing_is_skipped(write: &CursorWrite<'_>) -> Verdict {
    let (from, to) = (write.from.block_id.number(), write.to.block_id.number());
    for key in write.observer.final_by_block.range(from + 1..=to).flat_map(|(_, keys)| keys) {
        if let Some(transfer) = write.observer.final_transfers.get(key)
            && !is_accounted_for(write.observer, *key, transfer)
        {
            return Err(format!(
                "the cursor passed block {} and {} of it is not stored",
                transfer.position.block_num, key.0
            ));
        }
    }
    Ok(())
}

pub(super) fn opened_once_the_chain_is_followed(write: &PaymentWrite<'_>) -> Verdict {
    let is_opened = write.before.is_none() && !write.observer.other_engine.contains(&write.after.id);
    hold(!is_opened || write.observer.cursor.is_some(), || {
        "it was opened before the chain was followed: its transfers could be overlooked".to_owned()
    })
}

/// Returns whether a transfer is durably credited or unmatched, or concerns no merchant.
pub(super) fn is_accounted_for(observer: &Observer, key: (TxId, u32), transfer: &Transfer) -> bool {
    if observer.credited.contains_key(&key) || observer.unmatched.contains_key(&key) {
        return true;
    }
    !observer.is_watched(transfer).unwrap_or(false)
}
