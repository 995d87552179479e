//! Usage and invoices of merchants: usage counts each completed payment, a month is invoiced once, and an invoice is
//! paid by its session.
//!
//! A group of batches counts in memory and writes each period once. A period with an invoice is closed: later usage
//! counts in the next open month.

use engine::{
    billing::{Month, Period, PeriodChange, PriorUsage, Sale, Schedule},
    ids::{MerchantId, PaymentId},
    time::Timestamp,
};

use crate::{
    batch::Invoicing,
    embedded::{
        commit::group::{CachedPeriod, Checked, Group, Overlay, conflict},
        fault::Fault,
        read::billing::{damaged_tiers, read},
        tables::{PeriodKey, meta},
        wal::single,
    },
    record::{self, indexed::PaymentFacts},
};

impl CachedPeriod {
    fn is_closed(&self) -> bool {
        self.is_damaged || self.period.as_ref().is_some_and(Period::is_closed)
    }
}

/// Returns how a write of a payment changes a period.
pub(crate) fn change_of(
    after: &PaymentFacts,
    sale: Option<Sale>,
    before: Option<&PaymentFacts>,
) -> Option<PeriodChange> {
    let counted = |before: &PaymentFacts| PriorUsage {
        state: before.state,
        missing_fee_millicents: before.missing_fee_millicents,
    };
    PeriodChange::of(after.state, sale, before.map(counted))
}

/// Returns a period, including the changes of earlier batches of the group.
fn cached_period<'g>(group: &'g mut Group<'_>, key: PeriodKey) -> Result<&'g mut CachedPeriod, Fault> {
    if !group.periods.contains_key(&key) {
        let table = group.tables.billing();
        let stored = match table.get(key) {
            Ok(Some(bytes)) => read(key, bytes.value()).map(Some),
            Ok(None) => Ok(None),
            Err(fault) => Err(fault),
        };
        let stored = table.skip_damaged(stored)?;
        let (is_damaged, period) = (stored.is_none(), stored.flatten());
        let was_unsettled = period.as_ref().is_some_and(Period::is_unsettled);
        group.periods.insert(key, CachedPeriod { period, was_unsettled, is_changed: false, is_damaged });
    }
    Ok(group.periods.get_mut(&key).expect("it was inserted above"))
}

/// Returns the first month from `month` on whose period is open.
fn open_month(group: &mut Group<'_>, merchant: u128, mut month: Month) -> Result<Month, Fault> {
    // The last representable month has no successor.
    while cached_period(group, (month.number(), merchant))?.is_closed() && month != month.next() {
        month = month.next();
    }
    Ok(month)
}

/// Returns the first open period from `month` on, for changes.
fn open_from<'g>(
    group: &'g mut Group<'_>,
    merchant: u128,
    month: Month,
    now: Timestamp,
) -> Result<&'g mut Period, Fault> {
    let month = open_month(group, merchant, month)?;
    let entry = cached_period(group, (month.number(), merchant))?;
    entry.is_changed = true;
    Ok(entry.period.get_or_insert_with(|| Period::begin(MerchantId::from_bits(merchant), month, now)))
}

/// Reads the period that a later write of a payment will change, so that a damaged row fails only its own batch.
pub(crate) fn prefetch(
    group: &mut Group<'_>,
    overlay: &mut Overlay,
    id: PaymentId,
    merchant: u128,
    change: &PeriodChange,
) -> Result<(), Fault> {
    match change.month() {
        Some(month) => {
            open_month(group, merchant, month)?;
            overlay.changed_periods.insert(merchant);
        }
        None => {
            if let Some(key) = invoiced_by(group, id)? {
                cached_period(group, key)?;
                overlay.changed_periods.insert(key.1);
            }
        }
    }
    Ok(())
}

fn invoiced_by(group: &mut Group<'_>, session: PaymentId) -> Result<Option<PeriodKey>, Fault> {
    Ok(group.tables.invoice_sessions().get_intact(session.bits())?.map(|key| key.value()))
}

/// Applies a change.
pub(crate) fn change(
    group: &mut Group<'_>,
    id: PaymentId,
    merchant: u128,
    change: &PeriodChange,
    now: Timestamp,
) -> Result<(), Fault> {
    if let Some(month) = change.month() {
        open_from(group, merchant, month, now)?.apply(change, now);
        return Ok(());
    }
    let Some(key) = invoiced_by(group, id)? else { return Ok(()) };
    let entry = cached_period(group, key)?;
    entry.is_changed |= entry.period.as_mut().is_some_and(|period| period.apply(change, now));
    Ok(())
}

/// Checks that a period is unchanged since it was read for an invoice.
pub(crate) fn check_invoice(group: &mut Group<'_>, overlay: &mut Overlay, invoicing: &Invoicing) -> Checked {
    let Invoicing { period, carried_millicents, .. } = invoicing;
    let key = (period.month.number(), period.merchant.bits());
    let stored = cached_period(group, key)?.period.as_ref();
    let is_as_read = stored.is_some_and(|stored| stored.accepts_invoice_for(period));
    // One batch invoices a merchant once: a period that an earlier step changed is not the one that was read.
    if !is_as_read || !overlay.changed_periods.insert(key.1) {
        return conflict(format_args!("the period {} of merchant {}", period.month, period.merchant));
    }
    if *carried_millicents != 0 {
        cached_period(group, (period.month.next().number(), key.1))?;
    }
    Ok(Ok(()))
}

/// Stores the invoice of a period, or a new session of its invoice.
pub(crate) fn invoice(group: &mut Group<'_>, invoicing: Invoicing) -> Result<(), Fault> {
    let Invoicing { period, invoice, carried_millicents, at } = invoicing;
    let key = (period.month.number(), period.merchant.bits());
    if let Some((session, _)) = &invoice.session {
        group.tables.invoice_sessions().insert(session.bits(), key);
    }
    let entry = cached_period(group, key)?;
    entry.is_changed = true;
    if let Some(stored) = entry.period.as_mut() {
        stored.set_invoice(invoice, at);
    }
    if carried_millicents != 0 {
        open_from(group, key.1, period.month.next(), at)?.carry(carried_millicents, at);
    }
    Ok(())
}

/// Checks that fee tiers replace the version that was read.
pub(crate) fn check_tiers(group: &mut Group<'_>, overlay: &mut Overlay, schedule: &Schedule, expected: u64) -> Checked {
    let stored = match overlay.tiers_version {
        Some(version) => version,
        None => match single::read(&group.tables.meta(), meta::FEE_TIERS)? {
            Some(bytes) => record::schedule_from_bytes(&bytes).map_err(damaged_tiers)?.version,
            None => 0,
        },
    };
    if stored != expected {
        return conflict("the fee tiers");
    }
    overlay.tiers_version = Some(schedule.version);
    Ok(Ok(()))
}

/// Writes the changed periods.
pub(crate) fn write_all(group: &mut Group<'_>) -> Result<(), Fault> {
    for (key, entry) in std::mem::take(&mut group.periods) {
        let Some(period) = entry.period.filter(|_| entry.is_changed) else { continue };
        group.tables.billing().insert(key, record::period_to_bytes(&period).as_slice());
        match (entry.was_unsettled, period.is_unsettled()) {
            (false, true) => group.tables.unsettled().insert(key, ()),
            (true, false) => group.tables.unsettled().remove(key)?,
            _ => {}
        }
    }
    Ok(())
}
