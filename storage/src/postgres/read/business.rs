//! Reads of compliance, billing, the audit log and single values.

use std::collections::BTreeMap;

use engine::{
    audit::Entry,
    billing::{BillingTotals, Month, Period, Schedule},
    compliance::ComplianceStatus,
    event_list::Epoch,
    ids::MerchantId,
    time::Timestamp,
};
use tokio_postgres::Row;

use crate::{
    embedded::tables::meta,
    postgres::{
        fault::Fault,
        read::accounts::limit_of,
        readers::Readers,
        statement::schema_guard,
        tables::business::{compliance, period as read_period},
        values::{Id, column, signed, unsigned},
    },
    record::{self, wire::Damage},
    store::{audit::AuditQuery, billing::PeriodQuery, page::Page},
};

/// Returns the compliance status of a merchant; the default for one without payments.
pub(crate) async fn compliance_status(readers: &Readers, merchant: MerchantId) -> Result<ComplianceStatus, Fault> {
    let sql = "SELECT record FROM compliance_statuses WHERE merchant_id = $1";
    let rows = readers.query(sql, &[&Id(merchant.bits())]).await?;
    rows.first().map_or_else(|| Ok(ComplianceStatus::default()), |row| compliance(merchant.bits(), column(row, 0)?))
}

fn period_of(row: &Row) -> Result<Period, Fault> {
    let Id(merchant) = column(row, 0)?;
    read_period(merchant, column(row, 1)?, column(row, 2)?)
}

fn number_of(month: Month) -> i32 {
    i32::try_from(month.number()).unwrap_or(i32::MAX)
}

async fn periods_with(
    readers: &Readers,
    sql: &str,
    parameters: &crate::postgres::connection::Parameters<'_>,
) -> Result<Vec<Period>, Fault> {
    let sql = format!("SELECT merchant_id, month, record FROM billing_periods {sql}");
    let mut found = Vec::new();
    for row in &readers.query(&sql, parameters).await? {
        found.extend(readers.pass(period_of(row))?);
    }
    Ok(found)
}

/// Returns a merchant's month.
pub(crate) async fn period(readers: &Readers, merchant: MerchantId, month: Month) -> Result<Option<Period>, Fault> {
    let sql = "SELECT merchant_id, month, record FROM billing_periods WHERE month = $1 AND merchant_id = $2";
    let rows = readers.query(sql, &[&number_of(month), &Id(merchant.bits())]).await?;
    rows.first().map(period_of).transpose()
}

/// Returns a merchant's periods, newest first.
pub(crate) async fn periods_of(readers: &Readers, merchant: MerchantId) -> Result<Vec<Period>, Fault> {
    periods_with(readers, "WHERE merchant_id = $1 ORDER BY month DESC", &[&Id(merchant.bits())]).await
}

/// Lists periods, the newest month first.
pub(crate) async fn periods(readers: &Readers, query: &PeriodQuery) -> Result<Page<Period>, Fault> {
    let skipped = query.page.saturating_sub(1).saturating_mul(query.limit as u64);
    let sql = "WHERE $1::uuid IS NULL OR merchant_id = $1 ORDER BY month DESC, merchant_id DESC";
    let merchant = query.merchant.map(|merchant| Id(merchant.bits()));
    let mut page = Page::of(Vec::new(), 0);
    for period in periods_with(readers, sql, &[&merchant]).await? {
        if query.status.is_none_or(|status| status == period.status(query.now)) {
            if page.total >= skipped && page.items.len() < query.limit {
                page.items.push(period);
            }
            page.total += 1;
        }
    }
    Ok(page)
}

/// Returns periods of months before `before` of which something is still to be billed or paid, the oldest first, after
/// the entry `after`.
pub(crate) async fn unsettled(
    readers: &Readers,
    before: Month,
    after: Option<(Month, MerchantId)>,
    limit: usize,
) -> Result<Vec<Period>, Fault> {
    let sql =
        "WHERE is_unsettled AND month < $1 AND (month, merchant_id) > ($2, $3) ORDER BY month, merchant_id LIMIT $4";
    let (month, merchant) = after.map_or((-1, 0), |(month, merchant)| (number_of(month), merchant.bits()));
    periods_with(readers, sql, &[&number_of(before), &month, &Id(merchant), &limit_of(limit)]).await
}

/// Returns the totals of each merchant's months.
pub(crate) async fn billing_accounts(readers: &Readers, now: Timestamp) -> Result<Vec<BillingTotals>, Fault> {
    let mut accounts = BTreeMap::new();
    for period in periods_with(readers, "ORDER BY month, merchant_id", &[]).await? {
        accounts.entry(period.merchant).or_insert_with(|| BillingTotals::of(period.merchant)).add(&period, now);
    }
    Ok(accounts.into_values().collect())
}

/// Returns entries of the audit log, newest first.
pub(crate) async fn audit(readers: &Readers, query: &AuditQuery) -> Result<Vec<Entry>, Fault> {
    let before = query.before.map_or(i64::MAX, signed);
    let limit = limit_of(query.limit);
    let rows = match query.merchant {
        None => {
            let sql = "SELECT seq, record FROM audit_log WHERE seq < $1 ORDER BY seq DESC LIMIT $2";
            readers.query(sql, &[&before, &limit]).await?
        }
        Some(merchant) => {
            let sql = "SELECT seq, record FROM ( \
                       (SELECT seq, record FROM audit_log WHERE merchant_id = $3 AND seq < $1 ORDER BY seq DESC LIMIT $2) \
                       UNION ALL \
                       (SELECT seq, record FROM audit_log WHERE actor_id = $3 AND seq < $1 ORDER BY seq DESC LIMIT $2) \
                       ) AS a ORDER BY seq DESC LIMIT $2";
            readers.query(sql, &[&before, &limit, &Id(merchant.bits())]).await?
        }
    };
    let mut found = Vec::new();
    for row in &rows {
        let seq = unsigned(column(row, 0)?);
        let read = record::audit_from_bytes(seq, column(row, 1)?).map_err(Fault::damaged("audit_log", seq));
        found.extend(readers.pass(read)?);
    }
    Ok(found)
}

/// Returns a single value.
pub(crate) async fn value(readers: &Readers, name: &str) -> Result<Option<Vec<u8>>, Fault> {
    let rows = readers.query("SELECT value FROM single_values WHERE name = $1", &[&name]).await?;
    rows.first().map(|row| column(row, 0)).transpose()
}

/// Returns a single value, decoded.
pub(crate) async fn single<T>(
    readers: &Readers,
    name: &'static str,
    decode: impl FnOnce(&[u8]) -> Result<T, Damage>,
) -> Result<Option<T>, Fault> {
    let value = value(readers, name).await?;
    value.map(|value| decode(&value)).transpose().map_err(Fault::damaged("single_values", name))
}

/// Returns the stored fee tiers.
pub(crate) async fn schedule(readers: &Readers) -> Result<Option<Schedule>, Fault> {
    single(readers, meta::FEE_TIERS, record::schedule_from_bytes).await
}

/// Returns the current epoch. Fails, as every commit does, once a migration has excluded programs of this level: the readiness of an
/// engine depends on this read.
pub(crate) async fn epoch(readers: &Readers) -> Result<Epoch, Fault> {
    let sql = format!("SELECT (SELECT value FROM single_values WHERE name = $1), {}", schema_guard());
    let rows = readers.query(&sql, &[&meta::EPOCHS]).await?;
    let value: Option<Vec<u8>> = rows.first().map(|row| column::<Option<Vec<u8>>>(row, 0)).transpose()?.flatten();
    let epochs = value.map(|value| record::epochs_from_bytes(&value)).transpose();
    let epochs = epochs.map_err(Fault::damaged("single_values", meta::EPOCHS))?.unwrap_or_default();
    Ok(epochs.last().copied().unwrap_or(Epoch::FIRST))
}

/// Returns the epochs of the store after the first.
pub(crate) async fn epochs(readers: &Readers) -> Result<Vec<Epoch>, Fault> {
    Ok(single(readers, meta::EPOCHS, record::epochs_from_bytes).await?.unwrap_or_default())
}
