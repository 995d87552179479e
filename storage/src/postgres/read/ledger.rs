//! Reads of what comes from the ledger: claims, unmatched transfers, ledger entries; and of idempotency keys.

use std::collections::BTreeMap;

use engine::{
    account::AccountName,
    idempotency::IdempotencyRecord,
    ids::{MerchantId, PaymentId},
    ledger::{ChainPosition, TxId},
    money::{Currency, Money},
    reconciliation::{Day, EntryKind, LedgerEntry},
    time::Timestamp,
    x402::ClaimRecord,
};
use tokio_postgres::Row;

use crate::{
    batch::Unmatched,
    embedded::read::ledger_entries::NO_PAYMENT,
    postgres::{
        fault::Fault,
        read::accounts::limit_of,
        readers::Readers,
        tables::{business::idempotency_record, ledger},
        values::{Id, Moment, bytes_of, column, unsigned},
    },
    record,
    store::{ledger_entries::LedgerEntryKey, unmatched::WaitingTransferKey},
};

fn claim_of(row: &Row) -> Result<ClaimRecord, Fault> {
    ledger::claim(bytes_of(row, 0)?, column(row, 1)?)
}

/// Returns who claimed a transaction.
pub(crate) async fn claim(readers: &Readers, tx_id: TxId) -> Result<Option<ClaimRecord>, Fault> {
    let sql = "SELECT tx_id, record FROM claims WHERE tx_id = $1";
    readers.query(sql, &[&tx_id.0.as_slice()]).await?.first().map(claim_of).transpose()
}

/// Returns the claims of those of the transactions that are claimed, in the order of the transactions.
pub(crate) async fn claims(readers: &Readers, tx_ids: &[TxId]) -> Result<Vec<ClaimRecord>, Fault> {
    let keys: Vec<&[u8]> = tx_ids.iter().map(|tx_id| tx_id.0.as_slice()).collect();
    let mut found = BTreeMap::new();
    for row in &readers.query("SELECT tx_id, record FROM claims WHERE tx_id = ANY($1)", &[&keys]).await? {
        found.extend(readers.pass(claim_of(row))?.map(|claim| (claim.tx_id, claim)));
    }
    Ok(tx_ids.iter().filter_map(|tx_id| found.get(tx_id).cloned()).collect())
}

/// Returns the first claim of one of the transactions, or else of one of the digests of a nonce or a payment identifier.
pub(crate) async fn overlapping(
    readers: &Readers,
    tx_ids: &[TxId],
    digests: &[[u8; 32]],
) -> Result<Option<ClaimRecord>, Fault> {
    let sql = "SELECT c.tx_id, c.record FROM (SELECT 1 AS kind, u.tx_id, u.place                FROM unnest($1::bytea[]) WITH ORDINALITY AS u (tx_id, place) UNION ALL                SELECT 2, n.tx_id, u.place FROM unnest($2::bytea[]) WITH ORDINALITY AS u (digest, place)                JOIN claim_names n ON n.digest = u.digest) AS k JOIN claims c ON c.tx_id = k.tx_id                ORDER BY k.kind, k.place LIMIT 1";
    let keys: Vec<&[u8]> = tx_ids.iter().map(|tx_id| tx_id.0.as_slice()).collect();
    let digests: Vec<&[u8]> = digests.iter().map(|digest| digest.as_slice()).collect();
    readers.query(sql, &[&keys, &digests]).await?.first().map(claim_of).transpose()
}

/// Returns the claims for other servers whose outcome is open.
pub(crate) async fn open_facilitations(readers: &Readers) -> Result<Vec<ClaimRecord>, Fault> {
    let sql = "SELECT tx_id, record FROM claims WHERE is_open_facilitation ORDER BY tx_id";
    let mut open = Vec::new();
    for row in &readers.query(sql, &[]).await? {
        open.extend(readers.pass(claim_of(row))?);
    }
    Ok(open)
}

/// Returns claims that may be forgotten and whose transactions expired before `expired_before`, among the `limit` claims
/// after `after`, and the claim to continue after.
pub(crate) async fn forgettable_claims(
    readers: &Readers,
    expired_before: Timestamp,
    after: Option<TxId>,
    limit: usize,
) -> Result<(Vec<ClaimRecord>, Option<TxId>), Fault> {
    let sql = "SELECT tx_id, record FROM claims WHERE tx_id > $1 ORDER BY tx_id LIMIT $2";
    let start = after.map(|after| after.0.to_vec()).unwrap_or_default();
    let rows = readers.query(sql, &[&start, &limit_of(limit.saturating_add(1))]).await?;
    let (mut found, mut last) = (Vec::new(), None);
    for row in rows.iter().take(limit) {
        last = Some(TxId(bytes_of(row, 0)?));
        let claim = readers.pass(claim_of(row))?;
        found.extend(claim.filter(|claim| claim.is_forgettable() && claim.expired_before(expired_before)));
    }
    Ok((found, last.filter(|_| rows.len() > limit)))
}

/// Returns the result of an idempotency key.
pub(crate) async fn remembered(
    readers: &Readers,
    merchant: MerchantId,
    key: [u8; 32],
) -> Result<Option<IdempotencyRecord>, Fault> {
    let sql = "SELECT record FROM idempotency WHERE merchant_id = $1 AND key = $2";
    let rows = readers.query(sql, &[&Id(merchant.bits()), &key.as_slice()]).await?;
    rows.first().map(|row| idempotency_record(merchant.bits(), key, column(row, 0)?)).transpose()
}

/// Returns when the oldest stored idempotency key was created.
pub(crate) async fn oldest_key(readers: &Readers) -> Result<Option<Timestamp>, Fault> {
    let sql = "SELECT made_ms FROM idempotency ORDER BY made_ms LIMIT 1";
    let rows = readers.query(sql, &[]).await?;
    rows.first().map(|row| column(row, 0).map(|ms| Timestamp::from_millis(unsigned(ms)))).transpose()
}

const UNMATCHED: &str = "SELECT account, block_num, tx_in_block, op_in_tx, record FROM unmatched_transfers";

/// Returns an unmatched transfer by its account and its place on the ledger.
pub(crate) async fn unmatched_at(
    readers: &Readers,
    account: &AccountName,
    place: ChainPosition,
) -> Result<Option<Unmatched>, Fault> {
    let sql = format!("{UNMATCHED} WHERE account = $1 AND block_num = $2 AND tx_in_block = $3 AND op_in_tx = $4");
    let [block, tx, op] = numbers(place);
    let rows = readers.query(&sql, &[&account.as_str(), &block, &tx, &op]).await?;
    rows.first().map(|row| ledger::unmatched(row, 0)).transpose()
}

fn numbers(place: ChainPosition) -> [i64; 3] {
    [place.block_num, place.tx_in_block, place.op_in_tx].map(i64::from)
}

/// Returns the unmatched transfers to an account that are older than `before`, newest first.
pub(crate) async fn unmatched_before(
    readers: &Readers,
    account: &AccountName,
    before: ChainPosition,
    limit: usize,
) -> Result<Vec<Unmatched>, Fault> {
    let sql = format!(
        "{UNMATCHED} WHERE account = $1 AND (block_num, tx_in_block, op_in_tx) < ($2, $3, $4) \
         ORDER BY block_num DESC, tx_in_block DESC, op_in_tx DESC LIMIT $5"
    );
    let [block, tx, op] = numbers(before);
    let mut found = Vec::new();
    for row in &readers.query(&sql, &[&account.as_str(), &block, &tx, &op, &limit_of(limit)]).await? {
        found.extend(readers.pass(ledger::unmatched(row, 0))?);
    }
    Ok(found)
}

/// Returns the transfers that wait for the payment they name, after `after`, by payment.
pub(crate) async fn waiting(
    readers: &Readers,
    after: Option<&WaitingTransferKey>,
    limit: usize,
) -> Result<Vec<WaitingTransferKey>, Fault> {
    let sql = "SELECT waits_for_payment_id, account, block_num, tx_in_block, op_in_tx FROM unmatched_transfers \
               WHERE waits_for_payment_id IS NOT NULL AND (waits_for_payment_id, account, block_num, tx_in_block, \
               op_in_tx) > ($1, $2, $3, $4, $5) ORDER BY 1, 2, 3, 4, 5 LIMIT $6";
    let (payment, account, [block, tx, op]) = match after {
        Some((payment, account, place)) => (payment.bits(), account.as_str(), numbers(*place)),
        None => (0, "", [-1; 3]),
    };
    let rows = readers.query(sql, &[&Id(payment), &account, &block, &tx, &op, &limit_of(limit)]).await?;
    let key = |row: &Row| {
        let (Id(payment), account) = (column(row, 0)?, column::<&str>(row, 1)?);
        let account =
            AccountName::parse(account).map_err(|why| Fault::inconsistent("unmatched_transfers", account, why))?;
        let number = |place| Ok::<_, Fault>(u32::try_from(unsigned(column(row, place)?)).unwrap_or(u32::MAX));
        let place = ChainPosition { block_num: number(2)?, tx_in_block: number(3)?, op_in_tx: number(4)? };
        Ok((PaymentId::from_bits(payment), account, place))
    };
    rows.iter().map(key).collect()
}

/// Returns the ledger entries of an account in blocks from `from` up to but without `to`, after an entry, and the last entry
/// if there is more.
pub(crate) async fn entries(
    readers: &Readers,
    account: &AccountName,
    (from, to): (Timestamp, Timestamp),
    after: Option<LedgerEntryKey>,
    limit: usize,
) -> Result<(Vec<LedgerEntry>, Option<LedgerEntryKey>), Fault> {
    let sql = "SELECT block_time, tx_id, op_in_tx, kind, payment_id, amount_units, currency FROM ledger_entries \
               WHERE account = $1 AND block_time >= $2 AND block_time < $3 \
               AND (block_time, tx_id, op_in_tx, kind, payment_id) > ($4, $5, $6, $7, $8) \
               ORDER BY block_time, tx_id, op_in_tx, kind, payment_id LIMIT $9";
    let first = LedgerEntryKey { at_ms: from.millis(), tx_id: [0; 20], op_in_tx: 0, kind: 0, payment: NO_PAYMENT };
    let start = after.unwrap_or(first);
    let (at, tx_id, op) =
        (Moment(Timestamp::from_millis(start.at_ms)), start.tx_id.to_vec(), i64::from(start.op_in_tx));
    // Kinds begin at 1: nothing equals the first key.
    let (kind, payment) = (i16::try_from(start.kind).unwrap_or(i16::MAX), Id(start.payment));
    let limit_more = limit_of(limit.saturating_add(1));
    let rows = readers
        .query(sql, &[&account.as_str(), &Moment(from), &Moment(to), &at, &tx_id, &op, &kind, &payment, &limit_more])
        .await?;
    let (mut found, mut last) = (Vec::new(), None);
    for row in rows.iter().take(limit) {
        let (key, entry) = entry_of(row)?;
        last = Some(key);
        found.extend(readers.pass(entry)?);
    }
    Ok((found, last.filter(|_| rows.len() > limit)))
}

fn entry_of(row: &Row) -> Result<(LedgerEntryKey, Result<LedgerEntry, Fault>), Fault> {
    let (Moment(at), tx_id, op) = (column(row, 0)?, bytes_of(row, 1)?, unsigned(column(row, 2)?));
    let (kind, Id(payment)) = (column::<i16>(row, 3)?, column(row, 4)?);
    let (units, currency) = (unsigned(column(row, 5)?), column::<&str>(row, 6)?);
    let op_in_tx = u32::try_from(op).unwrap_or(u32::MAX);
    let key = LedgerEntryKey { at_ms: at.millis(), tx_id, op_in_tx, kind: u32::try_from(kind).unwrap_or(0), payment };
    let damaged = || Fault::inconsistent("ledger_entries", TxId(tx_id), format_args!("{kind} {currency}"));
    let id = PaymentId::from_bits(payment);
    let kind = match kind {
        1 => Ok(EntryKind::Credit(id)),
        2 => Ok(EntryKind::Unmatched),
        3 => Ok(EntryKind::RefundReceived(id)),
        4 => Ok(EntryKind::RefundSent(id)),
        _ => Err(damaged()),
    };
    let entry = kind.and_then(|kind| {
        let currency = Currency::ALL.into_iter().find(|one| one.code() == currency).ok_or_else(damaged)?;
        Ok(LedgerEntry { tx_id: TxId(tx_id), op_in_tx, at, money: Money::new(units, currency), kind })
    });
    Ok((key, entry))
}

/// Returns the reconciliations of days before `before`, newest first.
pub(crate) async fn days(readers: &Readers, before: Option<Timestamp>, limit: usize) -> Result<Vec<Day>, Fault> {
    let sql = "SELECT begins_at, record FROM reconciled_days WHERE ($1::timestamptz IS NULL OR begins_at < $1) \
               ORDER BY begins_at DESC LIMIT $2";
    let mut found = Vec::new();
    for row in &readers.query(sql, &[&before.map(Moment), &limit_of(limit)]).await? {
        let Moment(begins_at) = column(row, 0)?;
        let read = record::day_from_bytes(column(row, 1)?).map_err(Fault::damaged("reconciled_days", begins_at));
        found.extend(readers.pass(read)?);
    }
    Ok(found)
}
