//! Reads of payments and transfers.

use std::collections::BTreeMap;

use engine::{
    ids::{PaymentId, SlugToken},
    ledger::TxId,
    payment::{Credit, Payment},
    time::Timestamp,
};
use tokio_postgres::Row;

use crate::{
    embedded::read::{
        listed::{self, Facets},
        unmatched::MAX_SUMMARIES_READ,
    },
    postgres::{
        fault::Fault,
        read::{accounts::limit_of, lists::NEWEST},
        readers::Readers,
        tables::payments::credit,
        values::{Id, Moment, bytes_of, column, signed, unsigned},
    },
    record,
    store::{page::Page, payments::Vicinity},
};

/// Reads a payment from its id and its record.
pub(crate) fn read(row: &Row, first: usize) -> Result<Payment, Fault> {
    let Id(id) = column(row, first)?;
    let id = PaymentId::from_bits(id);
    record::payment_from_bytes(id, column(row, first + 1)?).map_err(Fault::damaged("payments", id))
}

/// Returns a payment.
pub(crate) async fn payment(readers: &Readers, id: PaymentId) -> Result<Option<Payment>, Fault> {
    let rows = readers.query("SELECT id, record FROM payments WHERE id = $1", &[&Id(id.bits())]).await?;
    rows.first().map(|row| read(row, 0)).transpose()
}

/// Returns the payment of a slug.
pub(crate) async fn by_slug(readers: &Readers, slug: SlugToken) -> Result<Option<Payment>, Fault> {
    let rows = readers.query("SELECT id, record FROM payments WHERE slug = $1", &[&Id(slug.bits())]).await?;
    rows.first().map(|row| read(row, 0)).transpose()
}

/// Returns payments of all merchants after `after`, oldest first, of at most `limit` records.
pub(crate) async fn after(readers: &Readers, after: PaymentId, limit: usize) -> Result<Page<Payment>, Fault> {
    let sql = "SELECT id, record FROM payments WHERE id > $1 ORDER BY id LIMIT $2";
    let mut page = Page::of(Vec::new(), 0);
    for row in &readers.query(sql, &[&Id(after.bits()), &limit_of(limit)]).await? {
        page.items.extend(readers.pass(read(row, 0))?);
        let Id(last) = column(row, 0)?;
        page.next = Some(last);
    }
    Ok(page)
}

/// Returns the payments of a vicinity, newest first.
pub(crate) async fn near(readers: &Readers, near: &Vicinity) -> Result<Vec<Payment>, Fault> {
    let ids = listed::ids_made(Some(near.from), Some(Timestamp::from_millis(near.to.millis().saturating_add(1))));
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let sql = format!(
        "SELECT p.id, p.record FROM ({NEWEST} LIMIT $5) AS n JOIN payments p ON p.id = n.id \
         WHERE (p.amount_units = $6 AND p.currency = $7) OR p.needs_attention ORDER BY p.id DESC LIMIT $8"
    );
    let facets: Vec<i16> = Facets::ALL.iter().map(i16::from).collect();
    let merchant = Id(near.merchant.bits());
    let (units, currency) = (signed(near.money.units), near.money.currency.code());
    let (first, last) = (Id(*ids.start()), Id(*ids.end()));
    let rows = readers
        .query(
            &sql,
            &[
                &merchant,
                &facets,
                &first,
                &last,
                &limit_of(MAX_SUMMARIES_READ),
                &units,
                &currency,
                &limit_of(near.limit),
            ],
        )
        .await?;
    let mut found = Vec::new();
    for row in &rows {
        found.extend(readers.pass(read(row, 0))?);
    }
    Ok(found)
}

/// Returns pending payments whose deadline is before `before`, earliest first, after the entry `after`.
pub(crate) async fn due(
    readers: &Readers,
    before: Timestamp,
    after: Option<(Timestamp, PaymentId)>,
    limit: usize,
) -> Result<Vec<(Timestamp, PaymentId)>, Fault> {
    let sql = "SELECT deadline, id FROM payments WHERE deadline < $1 AND (deadline, id) > ($2, $3) \
               ORDER BY deadline, id LIMIT $4";
    let (deadline, id) = after.map_or((Timestamp::EPOCH, 0), |(deadline, id)| (deadline, id.bits()));
    let rows = readers.query(sql, &[&Moment(before), &Moment(deadline), &Id(id), &limit_of(limit)]).await?;
    let entry = |row: &Row| {
        let (Moment(deadline), Id(id)) = (column(row, 0)?, column(row, 1)?);
        Ok((deadline, PaymentId::from_bits(id)))
    };
    rows.iter().map(entry).collect()
}

/// Returns the versions of those of the payments that exist.
pub(crate) async fn versions(readers: &Readers, ids: &[PaymentId]) -> Result<Vec<(PaymentId, u64)>, Fault> {
    let keys: Vec<Id> = ids.iter().map(|id| Id(id.bits())).collect();
    let mut found = BTreeMap::new();
    for row in &readers.query("SELECT id, version FROM payments WHERE id = ANY($1)", &[&keys]).await? {
        let Id(id) = column(row, 0)?;
        found.insert(PaymentId::from_bits(id), unsigned(column(row, 1)?));
    }
    Ok(ids.iter().filter_map(|id| Some((*id, *found.get(id)?))).collect())
}

/// Returns the payments that wait for a block.
pub(crate) async fn in_flight(readers: &Readers) -> Result<Vec<PaymentId>, Fault> {
    let rows = readers.query("SELECT id FROM payments WHERE in_flight ORDER BY id", &[]).await?;
    rows.iter().map(|row| column(row, 0).map(|Id(id)| PaymentId::from_bits(id))).collect()
}

/// Reads a transfer from its key and its record.
pub(crate) fn transfer_of(row: &Row) -> Result<Credit, Fault> {
    let (Id(payment), tx_id) = (column(row, 0)?, bytes_of(row, 1)?);
    let op = u32::try_from(unsigned(column(row, 2)?)).unwrap_or(u32::MAX);
    credit((payment, tx_id, op), column(row, 3)?)
}

/// Returns a payment's transfer, with its whole memo.
pub(crate) async fn transfer(
    readers: &Readers,
    payment: PaymentId,
    tx_id: TxId,
    op_in_tx: u32,
) -> Result<Option<Credit>, Fault> {
    let sql = "SELECT payment_id, tx_id, op_in_tx, record FROM transfers \
               WHERE payment_id = $1 AND tx_id = $2 AND op_in_tx = $3";
    let op = i64::from(op_in_tx);
    let rows = readers.query(sql, &[&Id(payment.bits()), &tx_id.0.as_slice(), &op]).await?;
    rows.first().map(transfer_of).transpose()
}

/// Returns a payment's transfers, newest first, before the place `before`, at most `limit`, with their whole memos.
pub(crate) async fn transfers(
    readers: &Readers,
    payment: PaymentId,
    before: Option<u64>,
    limit: usize,
) -> Result<Vec<Credit>, Fault> {
    let sql = "SELECT payment_id, tx_id, op_in_tx, record FROM transfers WHERE payment_id = $1 \
               AND ($2::bigint IS NULL OR seq < $2) ORDER BY seq DESC LIMIT $3";
    let before = before.map(signed);
    let mut found = Vec::new();
    for row in &readers.query(sql, &[&Id(payment.bits()), &before, &limit_of(limit)]).await? {
        found.extend(readers.pass(transfer_of(row))?);
    }
    Ok(found)
}
