//! Payments and their transfers: the checks of a write, and its effects on other rows.

use engine::{
    billing::{PeriodChange, PriorUsage},
    ids::{MerchantId, PaymentId},
    payment::Credit,
};

use crate::{
    embedded::{
        commit::ledger_entries::{self, LedgerEntryRow},
        read::search::{refund_words_of, transfer_words_of, words_of},
    },
    postgres::{
        commit::{
            business,
            prepared::PaymentStep,
            sums::is_open,
            working::{Checked, Working, conflict},
        },
        fault::Fault,
        table::Rows,
        tables::{
            ledger::EntryRow,
            payments::{PaymentRow, TransferRow, WordRow},
        },
        values::signed,
    },
    record,
};

/// Writes a payment that is unchanged since it was read.
pub(crate) fn payment(working: &mut Working, step: &PaymentStep) -> Checked {
    let PaymentStep { payment, expected, row, turnover, sale, refund_words, entries } = step;
    let (id, facts) = (payment.id.bits(), row.facts);
    let stored = working.payments.get(&id).map(|row| row.facts);
    if stored.map(|facts| facts.version) != *expected {
        return conflict(format_args!("payment {}", payment.id));
    }
    match stored {
        Some(stored) if (stored.merchant, stored.slug) != (facts.merchant, facts.slug) => {
            return conflict(format_args!("the owner or the checkout address of payment {}", payment.id));
        }
        Some(_) => {}
        None => {
            let is_taken = |rows: &Rows<PaymentRow>| rows.iter().any(|(_, row)| row.facts.slug == facts.slug);
            if working.slugs.contains(&facts.slug) || is_taken(&working.payments) {
                return conflict(format_args!("the checkout address of payment {}", payment.id));
            }
        }
    }
    if stored.is_some_and(|stored| stored.metadata > facts.metadata) {
        remove_words(working, payment.id, row)?;
    }
    if facts.refunds > stored.map_or(0, |stored| stored.refunds) {
        for word in refund_words {
            working.words.put((facts.merchant, word.clone(), id), WordRow);
        }
    }
    entries.iter().for_each(|line| write_entry(working, line));
    let was_open = stored.is_some_and(|stored| is_open(stored.state));
    let count = working.count(facts.merchant);
    count.stored_bytes += signed(facts.bytes) - signed(stored.map_or(0, |stored| stored.bytes));
    count.open_payments += i64::from(is_open(facts.state));
    count.open_payments -= i64::from(was_open);
    // `completed` is final: a payment counts once, when it reaches that state.
    if let Some((at, usd_cents)) = turnover.filter(|_| stored.is_none_or(|stored| stored.state != facts.state)) {
        business::count_completed(working, facts.merchant, at, usd_cents);
    }
    let prior =
        stored.map(|stored| PriorUsage { state: stored.state, missing_fee_millicents: stored.missing_fee_millicents });
    if let Some(change) = PeriodChange::of(facts.state, *sale, prior) {
        business::change_period(working, payment.id, facts.merchant, &change, payment.updated_at);
    }
    working.payments.put(id, row.clone());
    Ok(Ok(()))
}

/// Removes the words of deleted metadata from the index. Only careful groups load the rows that have the same words.
fn remove_words(working: &mut Working, id: PaymentId, row: &PaymentRow) -> Result<(), Fault> {
    if !working.is_careful {
        return Err(Fault::Outdated(format!("payment {id} loses words")));
    }
    let read = |bytes: &[u8]| record::payment_from_bytes(id, bytes).map_err(Fault::damaged("payments", id));
    let Some(stored) = working.payments.get(&id.bits()) else { return Ok(()) };
    let (before, after) = (read(&stored.record)?, read(&row.record)?);
    let mut kept = words_of(&after);
    kept.extend(refund_words_of(&after));
    // Words of its transfers remain, even if the metadata had them, too.
    let transfers = working.transfers.range((id.bits(), [0; 20], 0)..=(id.bits(), [u8::MAX; 20], u32::MAX));
    kept.extend(transfers.flat_map(|(_, row)| transfer_words_of(&row.credit)));
    for word in words_of(&before).difference(&kept) {
        working.words.remove_unread((before.merchant.bits(), word.clone(), id.bits()), WordRow);
    }
    Ok(())
}

/// Writes a transfer: a new one has a place of its own, a changed one keeps its place and its whole memo. The version of its
/// payment, which the same batch writes, guards against other writers.
pub(crate) fn transfer(working: &mut Working, payment: PaymentId, merchant: MerchantId, credit: &Credit) -> Checked {
    let bits = payment.bits();
    let is_written = working.payments.touched().any(|(id, _)| *id == bits);
    if !is_written {
        return conflict(format_args!("payment {payment}, which the batch does not write"));
    }
    let key = (bits, credit.tx_id.0, credit.op_in_tx);
    let of_payment = || working.transfers.range((bits, [0; 20], 0)..=(bits, [u8::MAX; 20], u32::MAX));
    let stored = working.transfers.get(&key).cloned();
    let is_its_place = match &stored {
        Some(stored) => stored.credit.seq == credit.seq,
        None => of_payment().all(|(_, row)| row.credit.seq != credit.seq),
    };
    let is_first = working.transfers.touched().all(|(touched, row)| {
        *touched != key && (touched.0 != bits || row.is_none_or(|row| row.credit.seq != credit.seq))
    });
    if !(is_its_place && is_first) {
        return conflict(format_args!("transfer {} of payment {payment}", credit.tx_id));
    }
    let mut credit = credit.clone();
    match stored {
        // An update does not change the stored memo.
        Some(stored) => credit.memo = stored.credit.memo,
        None => {
            for word in transfer_words_of(&credit) {
                working.words.put((merchant.bits(), word, bits), WordRow);
            }
        }
    }
    if let Some(line) = ledger_entries::of_transfer(payment, &credit) {
        write_entry(working, &line);
    }
    working.transfers.put(key, TransferRow { credit, merchant });
    Ok(Ok(()))
}

/// Writes a ledger entry. Writing it again has no effect.
pub(crate) fn write_entry(working: &mut Working, line: &LedgerEntryRow) {
    let (account, key, money) = line.row();
    working.entries.put((account, key.into()), EntryRow(money));
}
