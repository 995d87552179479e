//! Reads of ledger entries, their accounts, and results of reconciliation.

use std::ops::Bound;

use engine::{
    account::AccountName,
    ids::PaymentId,
    ledger::TxId,
    money::Money,
    reconciliation::{Day, EntryKind, LedgerEntry},
    time::Timestamp,
};

use crate::{
    embedded::{fault::Fault, wal::snapshot::Snapshot},
    record::{self, codes::Code},
    store::ledger_entries::LedgerEntryKey,
};

/// The payment id of ledger entries that belong to no payment.
pub(crate) const NO_PAYMENT: u128 = 0;

/// Returns the ledger entries of an account in blocks from `from` (inclusive) to `to` (exclusive) after a key, and the
/// key to continue from if there are more.
pub(crate) fn ledger_entries(
    snapshot: &Snapshot,
    account: &AccountName,
    (from, to): (Timestamp, Timestamp),
    after: Option<LedgerEntryKey>,
    limit: usize,
) -> Result<(Vec<LedgerEntry>, Option<LedgerEntryKey>), Fault> {
    let first = LedgerEntryKey { at_ms: from.millis(), tx_id: [0; 20], op_in_tx: 0, kind: 0, payment: NO_PAYMENT };
    let key = |place: &LedgerEntryKey| (place.at_ms, place.op_in_tx, place.kind, place.payment);
    let start = after.unwrap_or(first);
    let (at_ms, op_in_tx, kind, payment) = key(&start);
    let start_key = (account.as_str(), at_ms, &start.tx_id, op_in_tx, kind, payment);
    let start_bound = if after.is_some() { Bound::Excluded(start_key) } else { Bound::Included(start_key) };
    let end = Bound::Excluded((account.as_str(), to.millis(), &[0; 20], 0, 0, NO_PAYMENT));
    let (mut found, mut last) = (Vec::new(), None);
    let table = snapshot.ledger_entries();
    for line in table.range((start_bound, end))? {
        if found.len() >= limit {
            return Ok((found, last));
        }
        let (key, value) = line?;
        let (_, at_ms, tx_id, op_in_tx, kind, payment) = key.value();
        let (units, currency) = value.value();
        let unreadable =
            || Fault::inconsistent("ledger_entries", format!("{account} {at_ms}"), format!("{kind} {currency}"));
        last = Some(LedgerEntryKey { at_ms, tx_id: *tx_id, op_in_tx, kind, payment });
        let id = PaymentId::from_bits(payment);
        let entry = match kind {
            1 => EntryKind::Credit(id),
            2 => EntryKind::Unmatched,
            3 => EntryKind::RefundReceived(id),
            4 => EntryKind::RefundSent(id),
            _ => {
                table.skip_damaged::<()>(Err(unreadable()))?;
                continue;
            }
        };
        let Some(currency) = table.skip_damaged(Code::from_number(currency).ok_or_else(unreadable))? else { continue };
        let money = Money::new(units, currency);
        let (tx_id, at) = (*tx_id, Timestamp::from_millis(at_ms));
        found.push(LedgerEntry { tx_id: TxId(tx_id), op_in_tx, at, money, kind: entry });
    }
    Ok((found, None))
}

/// Returns every account that is watched or was, with its start, after `after` in order of name.
pub(crate) fn accounts(
    snapshot: &Snapshot,
    after: Option<&AccountName>,
    limit: usize,
) -> Result<Vec<(AccountName, Timestamp)>, Fault> {
    let start = after.map_or(Bound::Unbounded, |after| Bound::Excluded(after.as_str()));
    let mut found = Vec::new();
    for entry in snapshot.accounts().range::<&str>((start, Bound::Unbounded))? {
        if found.len() == limit {
            break;
        }
        let (name, since) = entry?;
        let account = AccountName::parse(name.value()).ok();
        found.extend(account.map(|account| (account, Timestamp::from_millis(since.value()))));
    }
    Ok(found)
}

/// Returns the reconciliations of days before `before`, newest first.
pub(crate) fn days(snapshot: &Snapshot, before: Option<Timestamp>, limit: usize) -> Result<Vec<Day>, Fault> {
    let end = before.map_or(Bound::Unbounded, |before| Bound::Excluded(before.millis()));
    let table = snapshot.reconciled_days();
    let mut found = Vec::new();
    for entry in table.range::<u64>((Bound::Unbounded, end))?.rev() {
        if found.len() == limit {
            break;
        }
        let (key, bytes) = entry?;
        found.extend(table.skip_damaged(
            record::day_from_bytes(bytes.value()).map_err(Fault::damaged("reconciled_days", key.value())),
        )?);
    }
    Ok(found)
}
