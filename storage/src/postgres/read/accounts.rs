//! Reads of merchants, their keys and the accounts that are watched.

use std::sync::Arc;

use engine::{
    account::AccountName,
    ids::MerchantId,
    merchant::{KeyDigest, Merchant},
    time::Timestamp,
};
use tokio_postgres::Row;

use crate::{
    postgres::{
        fault::Fault,
        readers::Readers,
        values::{Id, Moment, column, signed, unsigned},
    },
    record::{self, vault::Vault},
    store::{
        merchants::{ListedMerchant, MerchantQuery},
        page::{Page, PageAt},
    },
};

/// A limit as a statement takes it.
pub(crate) fn limit_of(limit: usize) -> i64 {
    signed(limit as u64)
}

pub(crate) fn read(row: &Row, first: usize, vault: &Vault) -> Result<Arc<Merchant>, Fault> {
    let Id(id) = column(row, first)?;
    let id = MerchantId::from_bits(id);
    record::merchant_from_bytes(id, column(row, first + 1)?, vault).map_err(Fault::damaged("merchants", id))
}

/// Returns a merchant.
pub(crate) async fn merchant(readers: &Readers, id: MerchantId, vault: &Vault) -> Result<Option<Arc<Merchant>>, Fault> {
    let rows = readers.query("SELECT id, record FROM merchants WHERE id = $1", &[&Id(id.bits())]).await?;
    rows.first().map(|row| read(row, 0, vault)).transpose()
}

/// Returns the merchant of an API key.
pub(crate) async fn merchant_by_key(
    readers: &Readers,
    digest: KeyDigest,
    vault: &Vault,
) -> Result<Option<Arc<Merchant>>, Fault> {
    let sql = "SELECT m.id, m.record FROM api_keys k JOIN merchants m ON m.id = k.merchant_id WHERE k.digest = $1";
    let rows = readers.query(sql, &[&digest.0.as_slice()]).await?;
    rows.first().map(|row| read(row, 0, vault)).transpose()
}

/// The filters of a list of merchants.
const FILTERS: &str = "($1::boolean IS NULL OR m.is_active = $1) \
     AND ($2::boolean IS NULL OR coalesce(c.is_on_hold, false) = $2)";
const FROM: &str = "FROM merchants m LEFT JOIN compliance_statuses c ON c.merchant_id = m.id";

/// Lists merchants, newest first. A search by words reads all of them, because there are few.
pub(crate) async fn merchants(
    readers: &Readers,
    query: &MerchantQuery,
    vault: &Vault,
) -> Result<Page<ListedMerchant>, Fault> {
    let text = query.query.as_deref().map(|text| text.trim().to_lowercase()).filter(|text| !text.is_empty());
    let mut page = match text {
        Some(text) => with_text(readers, query, vault, &text).await?,
        None => without_text(readers, query, vault).await?,
    };
    page.next = page.items.last().filter(|_| page.items.len() >= query.limit).map(|listed| listed.merchant.id.bits());
    Ok(page)
}

async fn without_text(readers: &Readers, query: &MerchantQuery, vault: &Vault) -> Result<Page<ListedMerchant>, Fault> {
    let (before, skipped) = match query.at {
        PageAt::Number(number) => (None, number.saturating_sub(1).saturating_mul(query.limit as u64)),
        PageAt::After(id) | PageAt::Following(id) => (Some(Id(id)), 0),
    };
    let sql = format!(
        "SELECT m.id, m.record, coalesce(c.is_on_hold, false) {FROM} WHERE {FILTERS} AND ($3::uuid IS NULL OR m.id < $3) \
         ORDER BY m.id DESC OFFSET $4 LIMIT $5"
    );
    let count = format!("SELECT count(*) {FROM} WHERE {FILTERS}");
    let (offset, limit) = (signed(skipped), limit_of(query.limit));
    let rows = async { readers.query(&sql, &[&query.active, &query.on_hold, &before, &offset, &limit]).await };
    let counted = async { readers.query(&count, &[&query.active, &query.on_hold]).await };
    let mut page = Page::of(Vec::new(), 0);
    let rows = if matches!(query.at, PageAt::Following(_)) {
        rows.await?
    } else {
        let (rows, counted) = futures_util::try_join!(rows, counted)?;
        page.total = counted.first().map(|row| column(row, 0)).transpose()?.map_or(0, unsigned);
        rows
    };
    for row in &rows {
        let is_on_hold = column(row, 2)?;
        page.items.extend(readers.pass(read(row, 0, vault))?.map(|merchant| ListedMerchant { merchant, is_on_hold }));
    }
    Ok(page)
}

async fn with_text(
    readers: &Readers,
    query: &MerchantQuery,
    vault: &Vault,
    text: &str,
) -> Result<Page<ListedMerchant>, Fault> {
    let sql = format!("SELECT m.id, m.record, coalesce(c.is_on_hold, false) {FROM} WHERE {FILTERS} ORDER BY m.id DESC");
    let mut page = Page::of(Vec::new(), 0);
    for row in &readers.query(&sql, &[&query.active, &query.on_hold]).await? {
        let Some(merchant) = readers.pass(read(row, 0, vault))? else { continue };
        let id = merchant.id;
        let is_found = id.to_string().contains(text)
            || merchant.name.to_lowercase().contains(text)
            || merchant.hive_account.as_str().contains(text);
        if !is_found {
            continue;
        }
        let starts = match query.at {
            PageAt::Number(number) => page.total >= number.saturating_sub(1).saturating_mul(query.limit as u64),
            PageAt::After(last) | PageAt::Following(last) => id.bits() < last,
        };
        page.total += 1;
        if starts && page.items.len() < query.limit {
            page.items.push(ListedMerchant { merchant, is_on_hold: column(row, 2)? });
        }
    }
    Ok(page)
}

fn accounts(rows: &[Row]) -> Result<Vec<AccountName>, Fault> {
    let mut found = Vec::with_capacity(rows.len());
    for row in rows {
        let name: &str = column(row, 0)?;
        found.push(AccountName::parse(name).map_err(|why| Fault::inconsistent("accounts", name, why))?);
    }
    Ok(found)
}

/// Returns watched accounts after `after` in order of name.
pub(crate) async fn watched(
    readers: &Readers,
    after: Option<&AccountName>,
    limit: usize,
) -> Result<Vec<AccountName>, Fault> {
    let sql = "SELECT name FROM accounts WHERE name > $1 ORDER BY name LIMIT $2";
    let after = after.map_or("", AccountName::as_str);
    accounts(&readers.query(sql, &[&after, &limit_of(limit)]).await?)
}

/// Returns watched accounts after `after` in order of name, and since when they are watched.
pub(crate) async fn since(
    readers: &Readers,
    after: Option<&AccountName>,
    limit: usize,
) -> Result<Vec<(AccountName, Timestamp)>, Fault> {
    let sql = "SELECT name, watched_since FROM accounts WHERE name > $1 ORDER BY name LIMIT $2";
    let after = after.map_or("", AccountName::as_str);
    let rows = readers.query(sql, &[&after, &limit_of(limit)]).await?;
    let times = rows.iter().map(|row| column(row, 1).map(|Moment(since)| since));
    Ok(accounts(&rows)?.into_iter().zip(times.collect::<Result<Vec<_>, Fault>>()?).collect())
}

/// Returns accounts that were watched for the first time after the number `after`, each with its number, in order.
pub(crate) async fn added(readers: &Readers, after: u64, limit: usize) -> Result<Vec<(u64, AccountName)>, Fault> {
    let sql = "SELECT name, number FROM accounts WHERE number > $1 ORDER BY number LIMIT $2";
    let rows = readers.query(sql, &[&signed(after), &limit_of(limit)]).await?;
    let numbers = rows.iter().map(|row| column(row, 1).map(unsigned));
    Ok(numbers.collect::<Result<Vec<_>, Fault>>()?.into_iter().zip(accounts(&rows)?).collect())
}

/// Returns accounts that need not be watched any more at `now`.
pub(crate) async fn retired(readers: &Readers, now: Timestamp, limit: usize) -> Result<Vec<AccountName>, Fault> {
    let sql = "SELECT name FROM accounts WHERE unwatch_at <= $1 ORDER BY name LIMIT $2";
    accounts(&readers.query(sql, &[&Moment(now), &limit_of(limit)]).await?)
}

fn ids(rows: &[Row]) -> Result<Vec<MerchantId>, Fault> {
    rows.iter().map(|row| column(row, 0).map(|Id(id)| MerchantId::from_bits(id))).collect()
}

/// Returns the merchants whose pending change is due at `now`, earliest first.
pub(crate) async fn pending(readers: &Readers, now: Timestamp, limit: usize) -> Result<Vec<MerchantId>, Fault> {
    let sql = "SELECT id FROM merchants WHERE account_change_due_at <= $1 ORDER BY account_change_due_at, id LIMIT $2";
    ids(&readers.query(sql, &[&Moment(now), &limit_of(limit)]).await?)
}

/// Returns the merchants that have proven an account, at most `limit`.
pub(crate) async fn proven(readers: &Readers, account: &AccountName, limit: usize) -> Result<Vec<MerchantId>, Fault> {
    let sql = "SELECT id FROM merchants WHERE account = $1 AND is_account_proven ORDER BY id LIMIT $2";
    ids(&readers.query(sql, &[&account.as_str(), &limit_of(limit)]).await?)
}
