//! Reads of usage and invoices.

use std::{collections::BTreeMap, ops::Bound};

use engine::{
    billing::{BillingTotals, Month, Period, Schedule},
    ids::MerchantId,
    time::Timestamp,
};

use crate::{
    embedded::{
        fault::Fault,
        tables::{PeriodKey, meta},
        wal::{single, snapshot::Snapshot},
    },
    record::{self, wire::Damage},
    store::{billing::PeriodQuery, page::Page},
};

pub(crate) fn month_of(number: u32) -> Result<Month, Fault> {
    Month::from_number(number).ok_or_else(|| Fault::inconsistent("billing", number, "not a month"))
}

pub(crate) fn read(key: PeriodKey, bytes: &[u8]) -> Result<Period, Fault> {
    let (month, merchant) = (month_of(key.0)?, MerchantId::from_bits(key.1));
    let name = || format!("{month} of {merchant}");
    record::period_from_bytes(merchant, month, bytes).map_err(|damage| Fault::inconsistent("billing", name(), damage))
}

pub(crate) fn damaged_tiers(damage: Damage) -> Fault {
    Fault::inconsistent("meta", meta::FEE_TIERS, damage)
}

/// Returns a merchant's month.
pub(crate) fn period(snapshot: &Snapshot, merchant: MerchantId, month: Month) -> Result<Option<Period>, Fault> {
    let key = (month.number(), merchant.bits());
    match snapshot.billing().get(key)? {
        Some(bytes) => read(key, bytes.value()).map(Some),
        None => Ok(None),
    }
}

/// Returns a merchant's periods, newest first. The table orders by month, so each month is one point read.
pub(crate) fn periods_of(snapshot: &Snapshot, merchant: MerchantId) -> Result<Vec<Period>, Fault> {
    let table = snapshot.billing();
    let (Some((first, _)), Some((last, _))) = (table.first()?, table.last()?) else { return Ok(Vec::new()) };
    let months = first.value().0..=last.value().0;
    let mut periods = Vec::new();
    for number in months.rev() {
        let key = (number, merchant.bits());
        if let Some(bytes) = table.get_intact(key)? {
            periods.extend(table.skip_damaged(read(key, bytes.value()))?);
        }
    }
    Ok(periods)
}

/// Lists periods, the newest month first.
pub(crate) fn periods(snapshot: &Snapshot, query: &PeriodQuery) -> Result<Page<Period>, Fault> {
    let skipped = query.page.saturating_sub(1).saturating_mul(query.limit as u64);
    let mut page = Page::of(Vec::new(), 0);
    let table = snapshot.billing();
    for entry in table.iter()?.rev() {
        let (key, bytes) = entry?;
        if query.merchant.is_some_and(|merchant| merchant.bits() != key.value().1) {
            continue;
        }
        let Some(period) = table.skip_damaged(read(key.value(), bytes.value()))? else { continue };
        if query.status.is_none_or(|status| status == period.status(query.now)) {
            if page.total >= skipped && page.items.len() < query.limit {
                page.items.push(period);
            }
            page.total += 1;
        }
    }
    Ok(page)
}

/// Returns periods of months before `before` that still have to be invoiced or paid, oldest first, after the entry
/// `after`.
pub(crate) fn unsettled(
    snapshot: &Snapshot,
    before: Month,
    after: Option<(Month, MerchantId)>,
    limit: usize,
) -> Result<Vec<Period>, Fault> {
    let records = snapshot.billing();
    let begin = match after {
        Some((month, merchant)) => Bound::Excluded((month.number(), merchant.bits())),
        None => Bound::Unbounded,
    };
    let mut found = Vec::new();
    for entry in snapshot.unsettled().range::<PeriodKey>((begin, Bound::Excluded((before.number(), 0))))? {
        if found.len() == limit {
            break;
        }
        let key = entry?.0.value();
        let period = match records.get(key) {
            Ok(Some(bytes)) => read(key, bytes.value()),
            Ok(None) => Err(Fault::inconsistent("billing", format!("{key:?}"), "it is missing")),
            Err(fault) => Err(fault),
        };
        found.extend(records.skip_damaged(period)?);
    }
    Ok(found)
}

/// Returns the totals of every merchant's periods, by merchant.
pub(crate) fn accounts(snapshot: &Snapshot, now: Timestamp) -> Result<Vec<BillingTotals>, Fault> {
    let mut accounts = BTreeMap::new();
    let table = snapshot.billing();
    for entry in table.iter()? {
        let (key, bytes) = entry?;
        let Some(period) = table.skip_damaged(read(key.value(), bytes.value()))? else { continue };
        accounts.entry(period.merchant).or_insert_with(|| BillingTotals::of(period.merchant)).add(&period, now);
    }
    Ok(accounts.into_values().collect())
}

/// Returns the stored fee tiers.
pub(crate) fn schedule(snapshot: &Snapshot) -> Result<Option<Schedule>, Fault> {
    match single::read(&snapshot.meta(), meta::FEE_TIERS)? {
        Some(bytes) => record::schedule_from_bytes(&bytes).map(Some).map_err(damaged_tiers),
        None => Ok(None),
    }
}
