//! Log lines that answer "why did this payment not complete?": one for each transfer that can no longer change and
//! concerns somebody, with payment, merchant, transaction, amount and reason. Memos stay out: anybody writes them.

use engine::{
    ledger::{MemoMatch, Transfer, match_memo},
    payment::{Disposition, Payment},
};
use storage::{Unmatched, UnmatchedReason};

/// Logs what a transfer did for the payment it names.
pub(crate) fn credited(transfer: &Transfer, payment: &Payment) {
    let credit = payment.transfers.iter().find(|credit| {
        credit.tx_id == transfer.tx_id && credit.op_in_tx == transfer.place.op_in_tx && credit.to == transfer.to
    });
    // One that is not kept is only known by the sums: it did not count by itself.
    let reason = credit.map_or("not_kept", |credit| reason(credit.disposition));
    let remaining_units = payment.remaining_units();
    tracing::info!(
        payment.id = %payment.id,
        merchant.id = %payment.merchant,
        tx_id = %transfer.tx_id,
        block_num = transfer.place.block_num,
        from = %transfer.from,
        amount = %transfer.money,
        reason,
        status = %payment.state,
        remaining_units,
        "payment {}: {} from {} is {reason}, {remaining_units} units of {} remain",
        payment.id,
        transfer.money,
        transfer.from,
        payment.amount.currency
    );
}

/// Logs a transfer to a merchant's account that pays no session.
pub(crate) fn unmatched(unmatched: &Unmatched) {
    let (transfer, reason) = (&unmatched.transfer, unmatched.reason.word());
    tracing::info!(
        payment.id = named(transfer),
        account = %transfer.to,
        tx_id = %transfer.tx_id,
        block_num = transfer.place.block_num,
        from = %transfer.from,
        amount = %transfer.money,
        reason,
        "unmatched transfer: {} from {} to {}: {reason}",
        transfer.money,
        transfer.from,
        transfer.to
    );
}

/// Logs a transfer that names a session, and went to an account that is nobody's here.
pub(crate) fn elsewhere(transfer: &Transfer, reason: UnmatchedReason) {
    let reason = reason.word();
    tracing::info!(
        payment.id = named(transfer),
        account = %transfer.to,
        tx_id = %transfer.tx_id,
        block_num = transfer.place.block_num,
        from = %transfer.from,
        amount = %transfer.money,
        reason,
        "transfer to another account: {} from {} to {}: {reason}",
        transfer.money,
        transfer.from,
        transfer.to
    );
}

/// Returns the payment that the memo names, or nothing.
fn named(transfer: &Transfer) -> String {
    match match_memo(&transfer.memo) {
        MemoMatch::Exact(id) | MemoMatch::Normalized(id) => id.to_string(),
        MemoMatch::None | MemoMatch::Ambiguous | MemoMatch::Encrypted => String::new(),
    }
}

/// Logs the new state of a payment, with what decided it.
pub(crate) fn moved(payment: &Payment) {
    let counted = payment.transfers.iter().filter(|credit| credit.disposition == Disposition::Counted);
    let last = counted.max_by_key(|credit| credit.block.map(|block| block.place));
    let tx_id = last.map(|credit| credit.tx_id.to_string()).unwrap_or_default();
    tracing::info!(
        payment.id = %payment.id,
        merchant.id = %payment.merchant,
        status = %payment.state,
        amount = %payment.amount,
        paid_units = payment.paid_units(),
        tx_id,
        "payment {} is {}",
        payment.id,
        payment.state
    );
}

const fn reason(disposition: Disposition) -> &'static str {
    match disposition {
        Disposition::Counted => "counted",
        Disposition::Surplus => "paid_again",
        Disposition::Late => "paid_late",
        Disposition::AfterCancel => "paid_after_cancel",
        Disposition::AfterFailure => "paid_after_failure",
        Disposition::WrongCurrency => "wrong_currency",
        Disposition::SelfTransfer => "self_transfer",
        Disposition::Fee => "fee",
    }
}
