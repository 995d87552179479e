//! Ledger entries: every operation of the chain that counts for an account, by block time; and the results of the daily
//! reconciliation.

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
    embedded::{commit::group::Group, fault::Fault, read::ledger_entries::NO_PAYMENT},
    record::codes::Code,
    store::ledger_entries::LedgerEntryKey,
};

/// A ledger entry, ready to be written.
#[derive(Debug, Clone)]
pub(crate) struct LedgerEntryRow {
    account: AccountName,
    entry: LedgerEntry,
}

impl LedgerEntryRow {
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
            EntryKind::Unmatched => (2, NO_PAYMENT),
            EntryKind::RefundReceived(payment) => (3, payment.bits()),
            EntryKind::RefundSent(payment) => (4, payment.bits()),
        };
        LedgerEntryKey { at_ms: at.millis(), tx_id: tx_id.0, op_in_tx, kind, payment }
    }
}

/// Returns whether an operation is part of a block. An account's history numbers virtual operations differently.
const fn is_in_block(place: ChainPosition) -> bool {
    place.tx_in_block != u32::MAX
}

/// Returns the ledger entries of a payment's refunds.
pub(crate) fn of_payment(payment: &Payment) -> Vec<LedgerEntryRow> {
    let id = payment.id;
    let mut lines = Vec::new();
    for refund in &payment.refunds {
        for (account, entry) in
            [(&payment.pay_to, EntryKind::RefundSent(id)), (&refund.to, EntryKind::RefundReceived(id))]
        {
            lines.push(LedgerEntryRow::new(account, refund.tx_id, refund.op_in_tx, refund.at, refund.money, entry));
        }
    }
    lines
}

/// Returns the ledger entry of a payment's transfer, once the transfer is irreversible.
pub(crate) fn of_transfer(payment: PaymentId, credit: &Credit) -> Option<LedgerEntryRow> {
    let block = credit.block.filter(|block| is_in_block(block.position))?;
    let (tx_id, op, money) = (credit.tx_id, credit.op_in_tx, credit.money);
    let line = || LedgerEntryRow::new(&credit.to, tx_id, op, block.time, money, EntryKind::Credit(payment));
    (credit.finality == Finality::Irreversible).then(line)
}

/// Returns the ledger entry of an unmatched transfer.
pub(crate) fn of_unmatched(unmatched: &Unmatched) -> Option<LedgerEntryRow> {
    let transfer = &unmatched.transfer;
    (is_in_block(transfer.position) && !mutant!("unmatched-without-ledger-entry")).then(|| {
        let (tx_id, op, at) = (transfer.tx_id, transfer.position.op_in_tx, transfer.block_time);
        LedgerEntryRow::new(&transfer.to, tx_id, op, at, transfer.money, EntryKind::Unmatched)
    })
}

/// Writes a ledger entry. WriteVersion the same entry again has no effect.
pub(crate) fn write(group: &mut Group<'_>, line: &LedgerEntryRow) -> Result<(), Fault> {
    let LedgerEntryKey { at_ms, tx_id, op_in_tx, kind, payment } = line.place();
    let money = line.entry.money;
    let key = (line.account.as_str(), at_ms, &tx_id, op_in_tx, kind, payment);
    group.tables.ledger_entries().insert(key, (money.units, money.currency.number()));
    Ok(())
}

/// Records since when an account is watched. A later time does not replace an earlier one.
pub(crate) fn watch(group: &mut Group<'_>, account: &AccountName, since: Timestamp) -> Result<(), Fault> {
    let accounts = group.tables.accounts();
    if accounts.get_intact(account.as_str())?.is_none() || mutant!("watched-since-the-last-change") {
        accounts.insert(account.as_str(), since.millis());
        let added = group.tables.accounts_added();
        let last = added.last()?.map_or(0, |(number, _)| number.value());
        added.insert(last + 1, account.as_str());
    }
    Ok(())
}
