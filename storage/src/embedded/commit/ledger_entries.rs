//! The books: every operation of the chain that was counted for an account, by the time of its block, and what the
//! daily check of them said.

use engine::{
    account::AccountName,
    ids::PaymentId,
    ledger::{ChainPosition, TxId},
    money::Money,
    mutant,
    payment::{Credit, Finality, Payment},
    reconciliation::{EntryKind, LedgerEntry},
    time::Timestamp,
};

use crate::{
    batch::Unmatched,
    embedded::{commit::group::Group, fault::Fault, read::ledger_entries::NOBODY},
    record::codes::Code,
    store::ledger_entries::LedgerEntryKey,
};

/// A ledger entry, ready to be written.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    account: AccountName,
    entry: LedgerEntry,
}

impl Line {
    fn new(account: &AccountName, tx_id: TxId, op_in_tx: u32, at: Timestamp, money: Money, entry: EntryKind) -> Self {
        Self { account: *account, entry: LedgerEntry { tx_id, op_in_tx, at, money, kind: entry } }
    }

    /// Returns its account, its key and its amount.
    pub(crate) fn row(&self) -> (AccountName, LedgerEntryKey, Money) {
        (self.account, self.place(), self.entry.money)
    }

    fn place(&self) -> LedgerEntryKey {
        let LedgerEntry { tx_id, op_in_tx, at, kind: entry, .. } = self.entry;
        let (kind, payment) = match entry {
            EntryKind::Credit(payment) => (1, payment.bits()),
            EntryKind::Unmatched => (2, NOBODY),
            EntryKind::RefundReceived(payment) => (3, payment.bits()),
            EntryKind::RefundSent(payment) => (4, payment.bits()),
        };
        LedgerEntryKey { at_ms: at.millis(), tx_id: tx_id.0, op_in_tx, kind, payment }
    }
}

/// Says whether an operation stands in a block: an account's history tells virtual ones in its own way.
const fn is_in_block(place: ChainPosition) -> bool {
    place.tx_in_block != u32::MAX
}

/// Returns the lines of what was sent back for a payment.
pub(crate) fn of_payment(payment: &Payment) -> Vec<Line> {
    let id = payment.id;
    let mut lines = Vec::new();
    for refund in &payment.refunds {
        for (account, entry) in
            [(&payment.pay_to, EntryKind::RefundSent(id)), (&refund.to, EntryKind::RefundReceived(id))]
        {
            lines.push(Line::new(account, refund.tx_id, refund.op_in_tx, refund.at, refund.money, entry));
        }
    }
    lines
}

/// Returns the line of a payment's transfer, once it is final.
pub(crate) fn of_transfer(payment: PaymentId, credit: &Credit) -> Option<Line> {
    let block = credit.block.filter(|block| is_in_block(block.position))?;
    let (tx_id, op, money) = (credit.tx_id, credit.op_in_tx, credit.money);
    let line = || Line::new(&credit.to, tx_id, op, block.time, money, EntryKind::Credit(payment));
    (credit.finality == Finality::Irreversible).then(line)
}

/// Returns the line of a transfer that pays no session.
pub(crate) fn of_unmatched(unmatched: &Unmatched) -> Option<Line> {
    let transfer = &unmatched.transfer;
    (is_in_block(transfer.position) && !mutant!("unmatched-not-booked")).then(|| {
        let (tx_id, op, at) = (transfer.tx_id, transfer.position.op_in_tx, transfer.block_time);
        Line::new(&transfer.to, tx_id, op, at, transfer.money, EntryKind::Unmatched)
    })
}

/// Writes a line. The same again is the same line.
pub(crate) fn write(group: &mut Group<'_>, line: &Line) -> Result<(), Fault> {
    let LedgerEntryKey { at_ms, tx_id, op_in_tx, kind, payment } = line.place();
    let money = line.entry.money;
    let key = (line.account.as_str(), at_ms, &tx_id, op_in_tx, kind, payment);
    group.tables.ledger_entries().insert(key, (money.units, money.currency.number()));
    Ok(())
}

/// Notes since when an account is watched; the first word stays.
pub(crate) fn watch(group: &mut Group<'_>, account: &AccountName, since: Timestamp) -> Result<(), Fault> {
    let accounts = group.tables.accounts();
    if accounts.get_sound(account.as_str())?.is_none() {
        accounts.insert(account.as_str(), since.millis());
    }
    Ok(())
}
