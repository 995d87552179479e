//! Log lines that answer "why did this payment not complete?": one for each transfer that can no longer change and
//! concerns somebody, with payment, merchant, transaction, amount and reason. Memos stay out: anybody writes them.

use engine::{
    ledger::{MemoMatch, Transfer, match_memo},
    payment::{Credit, Disposition, Finality, Payment},
};
use storage::{Unmatched, UnmatchedReason};

/// Returns the transfers, of those that a step changed, that can no longer change by themselves.
pub(crate) fn decided(rows: &[Credit]) -> Vec<Credit> {
    rows.iter().filter(|credit| credit.finality == Finality::Irreversible).cloned().collect()
}

/// Logs what a transfer did for the payment it names.
pub(crate) fn credited(credit: &Credit, payment: &Payment) {
    let (reason, remaining_units) = (reason(credit.disposition), payment.remaining_units());
    tracing::info!(
        payment.id = %payment.id,
        merchant.id = %payment.merchant,
        tx_id = %credit.tx_id,
        block_num = credit.block.map(|block| block.place.block_num),
        from = %credit.from,
        amount = %credit.money,
        reason,
        status = %payment.state,
        remaining_units,
        "payment {}: {} from {} is {reason}, {remaining_units} units of {} remain",
        payment.id,
        credit.money,
        credit.from,
        payment.amount.currency
    );
}

/// Logs a transfer to a merchant's account that pays no session.
pub(crate) fn unmatched(unmatched: &Unmatched) {
    uncredited(&unmatched.transfer, unmatched.reason.word(), "unmatched transfer");
}

/// Logs a transfer that was settled by x402 for somebody's resource.
pub(crate) fn sale(transfer: &Transfer) {
    uncredited(transfer, "x402", "sale by x402");
}

/// Logs a transfer that names a session, and went to an account that is nobody's here.
pub(crate) fn elsewhere(transfer: &Transfer, reason: UnmatchedReason) {
    uncredited(transfer, reason.word(), "transfer to another account");
}

fn uncredited(transfer: &Transfer, reason: &str, what: &str) {
    tracing::info!(
        payment.id = named(transfer),
        account = %transfer.to,
        tx_id = %transfer.tx_id,
        block_num = transfer.place.block_num,
        from = %transfer.from,
        amount = %transfer.money,
        reason,
        "{what}: {} from {} to {}: {reason}",
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
    let tx_id = payment.paid_by.map(|tx_id| tx_id.to_string()).unwrap_or_default();
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
