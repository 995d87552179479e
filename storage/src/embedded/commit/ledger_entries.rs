//! The books: every operation of the chain that was counted for an account, by the time of its block, and what the
//! daily check of them said.

use std::ops::Bound;

use engine::{
    account::AccountName,
    books::{Booked, Day, Entry},
    ids::PaymentId,
    ledger::{Place, TxId},
    money::Money,
    mutant,
    payment::{Credit, Finality, Payment},
    time::Timestamp,
};

use crate::{
    batch::Unmatched,
    embedded::{commit::apply::Group, fault::Fault, wal::snapshot::Snapshot},
    record::{self, Code},
};

/// What stands in place of a payment where there is none.
const NOBODY: u128 = 0;

/// A line of the books, ready to be written.
#[derive(Debug)]
pub(crate) struct Line {
    account: AccountName,
    booked: Booked,
}

/// Where a page of the books ends; the next begins after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BookedPlace {
    at_ms: u64,
    tx_id: [u8; 20],
    op_in_tx: u32,
    kind: u32,
    payment: u128,
}

impl Line {
    fn new(account: &AccountName, tx_id: TxId, op_in_tx: u32, at: Timestamp, money: Money, entry: Entry) -> Self {
        Self { account: *account, booked: Booked { tx_id, op_in_tx, at, money, entry } }
    }

    fn place(&self) -> BookedPlace {
        let Booked { tx_id, op_in_tx, at, entry, .. } = self.booked;
        let (kind, payment) = match entry {
            Entry::Credit(payment) => (1, payment.bits()),
            Entry::Unmatched => (2, NOBODY),
            Entry::RefundReceived(payment) => (3, payment.bits()),
            Entry::RefundSent(payment) => (4, payment.bits()),
        };
        BookedPlace { at_ms: at.millis(), tx_id: tx_id.0, op_in_tx, kind, payment }
    }
}

/// Says whether an operation stands in a block: an account's history tells virtual ones in its own way.
const fn is_in_block(place: Place) -> bool {
    place.tx_in_block != u32::MAX
}

/// Returns the lines of what was sent back for a payment.
pub(crate) fn of_payment(payment: &Payment) -> Vec<Line> {
    let id = payment.id;
    let mut lines = Vec::new();
    for refund in &payment.refunds {
        for (account, entry) in [(&payment.pay_to, Entry::RefundSent(id)), (&refund.to, Entry::RefundReceived(id))] {
            lines.push(Line::new(account, refund.tx_id, refund.op_in_tx, refund.at, refund.money, entry));
        }
    }
    lines
}

/// Returns the line of a payment's transfer, once it is final.
pub(crate) fn of_transfer(payment: PaymentId, credit: &Credit) -> Option<Line> {
    let block = credit.block.filter(|block| is_in_block(block.place))?;
    let (tx_id, op, money) = (credit.tx_id, credit.op_in_tx, credit.money);
    let line = || Line::new(&credit.to, tx_id, op, block.time, money, Entry::Credit(payment));
    (credit.finality == Finality::Irreversible).then(line)
}

/// Returns the line of a transfer that pays no session.
pub(crate) fn of_unmatched(unmatched: &Unmatched) -> Option<Line> {
    let transfer = &unmatched.transfer;
    (is_in_block(transfer.place) && !mutant!("unmatched-not-booked")).then(|| {
        let (tx_id, op, at) = (transfer.tx_id, transfer.place.op_in_tx, transfer.block_time);
        Line::new(&transfer.to, tx_id, op, at, transfer.money, Entry::Unmatched)
    })
}

/// Writes a line. The same again is the same line.
pub(crate) fn write(group: &mut Group<'_>, line: &Line) -> Result<(), Fault> {
    let BookedPlace { at_ms, tx_id, op_in_tx, kind, payment } = line.place();
    let money = line.booked.money;
    let key = (line.account.as_str(), at_ms, &tx_id, op_in_tx, kind, payment);
    group.tables.booked().insert(key, (money.units, money.currency.number()));
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

/// Returns what was counted for an account in blocks from `from` up to but without `to`, after a place, and where it ends
/// if there is more.
pub(crate) fn booked(
    snapshot: &Snapshot,
    account: &AccountName,
    (from, to): (Timestamp, Timestamp),
    after: Option<BookedPlace>,
    limit: usize,
) -> Result<(Vec<Booked>, Option<BookedPlace>), Fault> {
    let first = BookedPlace { at_ms: from.millis(), tx_id: [0; 20], op_in_tx: 0, kind: 0, payment: NOBODY };
    let key = |place: &BookedPlace| (place.at_ms, place.op_in_tx, place.kind, place.payment);
    let start = after.unwrap_or(first);
    let (at_ms, op_in_tx, kind, payment) = key(&start);
    let start_key = (account.as_str(), at_ms, &start.tx_id, op_in_tx, kind, payment);
    let start_bound = if after.is_some() { Bound::Excluded(start_key) } else { Bound::Included(start_key) };
    let end = Bound::Excluded((account.as_str(), to.millis(), &[0; 20], 0, 0, NOBODY));
    let (mut found, mut last) = (Vec::new(), None);
    let table = snapshot.booked();
    for line in table.range((start_bound, end))? {
        if found.len() >= limit {
            return Ok((found, last));
        }
        let (key, value) = line?;
        let (_, at_ms, tx_id, op_in_tx, kind, payment) = key.value();
        let (units, currency) = value.value();
        let unreadable = || Fault::contradicted("booked", format!("{account} {at_ms}"), format!("{kind} {currency}"));
        last = Some(BookedPlace { at_ms, tx_id: *tx_id, op_in_tx, kind, payment });
        let id = PaymentId::from_bits(payment);
        let entry = match kind {
            1 => Entry::Credit(id),
            2 => Entry::Unmatched,
            3 => Entry::RefundReceived(id),
            4 => Entry::RefundSent(id),
            _ => {
                table.pass::<()>(Err(unreadable()))?;
                continue;
            }
        };
        let Some(currency) = table.pass(Code::from_number(currency).ok_or_else(unreadable))? else { continue };
        let money = Money::new(units, currency);
        let (tx_id, at) = (*tx_id, Timestamp::from_millis(at_ms));
        found.push(Booked { tx_id: TxId(tx_id), op_in_tx, at, money, entry });
    }
    Ok((found, None))
}

/// Returns every account that ever was a merchant's, and since when it is watched, after `after` in order of name.
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

/// Returns what the checks of days before `before` said, newest first.
pub(crate) fn days(snapshot: &Snapshot, before: Option<Timestamp>, limit: usize) -> Result<Vec<Day>, Fault> {
    let end = before.map_or(Bound::Unbounded, |before| Bound::Excluded(before.millis()));
    let table = snapshot.books();
    let mut found = Vec::new();
    for entry in table.range::<u64>((Bound::Unbounded, end))?.rev() {
        if found.len() == limit {
            break;
        }
        let (key, bytes) = entry?;
        found.extend(table.pass(record::day_from_bytes(bytes.value()).map_err(Fault::damaged("books", key.value())))?);
    }
    Ok(found)
}
