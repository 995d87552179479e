//! Log lines that explain why a payment did not complete: one for each final transfer that concerns a merchant, with
//! payment, merchant, transaction, amount and reason. Memos are not logged, because anybody can write them.

use std::sync::{Mutex, PoisonError};

use engine::{
    ledger::{MemoMatch, Transfer, match_memo},
    payment::{Credit, Disposition, Finality, Payment},
};
use storage::{Unmatched, UnmatchedReason};

/// Returns the transfers changed by a step that are final.
pub(crate) fn decided(rows: &[Credit]) -> Vec<Credit> {
    rows.iter().filter(|credit| credit.finality == Finality::Irreversible).cloned().collect()
}

/// Logs the effect of a transfer on the payment that it names.
pub(crate) fn credited(credit: &Credit, payment: &Payment) {
    let (reason, remaining_units) = (reason(credit.disposition), payment.remaining_units());
    tracing::info!(
        payment.id = %payment.id,
        merchant.id = %payment.merchant,
        tx_id = %credit.tx_id,
        block_num = credit.block.map(|block| block.position.block_num),
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

/// Logs a transfer that was settled by x402 for a resource.
pub(crate) fn sale(transfer: &Transfer) {
    uncredited(transfer, "x402", "sale by x402");
}

/// Limits the log lines about transfers between unrelated accounts, for each reason, in [`WINDOW`] blocks. Such a
/// transfer costs its sender nothing.
const MAX_LINES: u32 = 100;
/// An hour of blocks.
const WINDOW: u32 = 1_200;

/// Logs transfers that name a session but went to an unrelated account, up to a number per hour.
#[derive(Debug, Default)]
pub(crate) struct OtherAccountLog {
    to_known_sessions: LineCounter,
    to_unknown_sessions: LineCounter,
}

impl OtherAccountLog {
    /// Logs a transfer, unless the lines of its reason are used up.
    pub(crate) fn log(&self, transfer: &Transfer, reason: UnmatchedReason) {
        let lines = match reason {
            UnmatchedReason::UnknownSession => &self.to_unknown_sessions,
            _ => &self.to_known_sessions,
        };
        match lines.take(transfer.position.block_num) {
            ..MAX_LINES => uncredited(transfer, reason.word(), "transfer to another account"),
            MAX_LINES => tracing::warn!(
                reason = reason.word(),
                "too many transfers to other accounts name payments: not logged for one hour of blocks"
            ),
            _ => {}
        }
    }
}

/// The window of blocks, and its number of lines.
#[derive(Debug, Default)]
struct LineCounter(Mutex<(u32, u32)>);

impl LineCounter {
    /// Returns the number of lines in the window of a block before this one.
    fn take(&self, block_num: u32) -> u32 {
        let window = block_num / WINDOW;
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.0 != window {
            *lines = (window, 0);
        }
        let taken = lines.1;
        lines.1 = taken.saturating_add(1);
        taken
    }
}

fn uncredited(transfer: &Transfer, reason: &str, what: &str) {
    tracing::info!(
        payment.id = memo_payment(transfer),
        account = %transfer.to,
        tx_id = %transfer.tx_id,
        block_num = transfer.position.block_num,
        from = %transfer.from,
        amount = %transfer.money,
        reason,
        "{what}: {} from {} to {}: {reason}",
        transfer.money,
        transfer.from,
        transfer.to
    );
}

/// Returns the payment that the memo names, if any.
fn memo_payment(transfer: &Transfer) -> String {
    match match_memo(&transfer.memo) {
        MemoMatch::Exact(id) | MemoMatch::Normalized(id) => id.to_string(),
        MemoMatch::None | MemoMatch::Ambiguous | MemoMatch::Encrypted => String::new(),
    }
}

/// Logs the new state of a payment with its cause.
pub(crate) fn state_changed(payment: &Payment) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_of_blocks_has_so_many_lines_and_the_next_begins_anew() {
        let lines = LineCounter::default();
        let taken: Vec<u32> = (0..MAX_LINES + 2).map(|n| lines.take(WINDOW + n)).collect();
        assert_eq!(taken, (0..MAX_LINES + 2).collect::<Vec<_>>());
        assert_eq!((lines.take(2 * WINDOW), lines.take(3 * WINDOW - 1), lines.take(3 * WINDOW)), (0, 1, 0));
    }
}
