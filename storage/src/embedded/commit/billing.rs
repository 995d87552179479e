//! What merchants use and owe: counted with the payment that completes, billed once, paid with the session that completes.
//!
//! A group of batches counts in memory and writes each period once. A period that has its invoice is closed: what comes
//! later is counted in the first month after it that is open.

use std::{collections::BTreeMap, ops::Bound};

use engine::{
    billing::{Account, Month, Period, Sale, Schedule},
    ids::{MerchantId, PaymentId},
    mutant,
    payment::State,
    time::Timestamp,
};

use crate::{
    batch::Invoicing,
    embedded::{
        commit::apply::{Ahead, Checked, Group, conflict},
        fault::Fault,
        tables::meta,
        wal::{single, snapshot::Snapshot},
    },
    record::{self, Damage, PaymentFacts},
    store::query::{Page, PeriodQuery},
};

/// The key of a period: its month, its merchant.
pub(crate) type PeriodKey = (u32, u128);

/// A period as the group knows it.
pub(crate) struct Held {
    period: Option<Period>,
    was_unsettled: bool,
    is_changed: bool,
    /// It cannot be read. Nothing is written in its place, and sales are counted in a later month.
    is_damaged: bool,
}

impl Held {
    fn is_closed(&self) -> bool {
        self.is_damaged || self.period.as_ref().is_some_and(|period| period.invoice.is_some())
    }
}

/// What a write of a payment means for a period.
pub(crate) enum Change {
    /// A sale completed.
    Sold(Sale),
    /// A fee came, or a fork took it, after its payment had completed.
    Fee {
        /// The sale as it is now.
        sale: Sale,
        /// What was missing before, thousandths of a US cent.
        missed_millicents: u64,
    },
    /// The session of an invoice completed.
    Paid,
}

impl Change {
    /// Returns what a write means. Completed is for good: a payment counts when it gets there, once.
    pub(crate) fn of(after: &PaymentFacts, sale: Option<Sale>, before: Option<&PaymentFacts>) -> Option<Self> {
        if after.state != State::Completed {
            return None;
        }
        let known = before.filter(|before| before.state == State::Completed && !mutant!("usage-counted-again"));
        match (sale, known) {
            (Some(sale), None) => Some(Self::Sold(sale)),
            (Some(sale), Some(known)) => {
                let missed_millicents = known.missing_fee_millicents;
                (missed_millicents != sale.missing_fee_millicents).then_some(Self::Fee { sale, missed_millicents })
            }
            (None, None) => Some(Self::Paid),
            (None, Some(_)) => None,
        }
    }
}

fn month_of(number: u32) -> Result<Month, Fault> {
    Month::from_number(number).ok_or_else(|| Fault::contradicted("billing", number, "that is no month"))
}

fn read(key: PeriodKey, bytes: &[u8]) -> Result<Period, Fault> {
    let (month, merchant) = (month_of(key.0)?, MerchantId::from_bits(key.1));
    let name = || format!("{month} of {merchant}");
    record::period_from_bytes(merchant, month, bytes).map_err(|damage| Fault::contradicted("billing", name(), damage))
}

/// Returns a period, earlier batches of the group included.
fn held<'g>(group: &'g mut Group<'_>, key: PeriodKey) -> Result<&'g mut Held, Fault> {
    if !group.periods.contains_key(&key) {
        let table = group.tables.billing();
        let stored = match table.get(key) {
            Ok(Some(bytes)) => read(key, bytes.value()).map(Some),
            Ok(None) => Ok(None),
            Err(fault) => Err(fault),
        };
        let stored = table.pass(stored)?;
        let (is_damaged, period) = (stored.is_none(), stored.flatten());
        let was_unsettled = period.as_ref().is_some_and(Period::is_unsettled);
        group.periods.insert(key, Held { period, was_unsettled, is_changed: false, is_damaged });
    }
    Ok(group.periods.get_mut(&key).expect("it was put there just now"))
}

/// Returns the first period from `month` on that is open.
fn open_from<'g>(
    group: &'g mut Group<'_>,
    merchant: u128,
    mut month: Month,
    now: Timestamp,
) -> Result<&'g mut Period, Fault> {
    loop {
        let closed = held(group, (month.number(), merchant))?.is_closed();
        // After the last month there is none to go on in.
        if !closed || month == month.next() {
            break;
        }
        month = month.next();
    }
    let held = held(group, (month.number(), merchant))?;
    held.is_changed = true;
    let begin = || Period::begin(MerchantId::from_bits(merchant), month, now);
    let period = held.period.get_or_insert_with(begin);
    period.updated_at = period.updated_at.max(now);
    Ok(period)
}

/// Reads what a later write of a payment will change: what cannot be read refuses its batch alone.
pub(crate) fn foresee(
    group: &mut Group<'_>,
    ahead: &mut Ahead,
    id: PaymentId,
    merchant: u128,
    change: &Change,
) -> Result<(), Fault> {
    match change {
        Change::Sold(sale) | Change::Fee { sale, .. } => {
            let mut month = Month::of(sale.at);
            while held(group, (month.number(), merchant))?.is_closed() && month != month.next() {
                month = month.next();
            }
            ahead.sold.insert(merchant);
        }
        Change::Paid => {
            if let Some(key) = invoiced_by(group, id)? {
                held(group, key)?;
                ahead.sold.insert(key.1);
            }
        }
    }
    Ok(())
}

fn invoiced_by(group: &mut Group<'_>, session: PaymentId) -> Result<Option<PeriodKey>, Fault> {
    Ok(group.tables.invoice_sessions().get_sound(session.bits())?.map(|key| key.value()))
}

/// Makes a change.
pub(crate) fn change(
    group: &mut Group<'_>,
    id: PaymentId,
    merchant: u128,
    change: &Change,
    now: Timestamp,
) -> Result<(), Fault> {
    match change {
        Change::Sold(sale) => open_from(group, merchant, Month::of(sale.at), now)?.usage.add(sale),
        Change::Fee { sale, missed_millicents } => {
            let period = open_from(group, merchant, Month::of(sale.at), now)?;
            period.usage.owe(*missed_millicents, sale.missing_fee_millicents);
        }
        Change::Paid => {
            let Some(key) = invoiced_by(group, id)? else { return Ok(()) };
            let held = held(group, key)?;
            let invoice = held.period.as_mut().and_then(|period| {
                period.updated_at = period.updated_at.max(now);
                period.invoice.as_mut()
            });
            if let Some(invoice) = invoice {
                invoice.paid_at.get_or_insert(now);
                held.is_changed = true;
            }
        }
    }
    Ok(())
}

/// An invoice is for a period as it was read, and for nothing that was counted or billed meanwhile.
pub(crate) fn check_invoice(group: &mut Group<'_>, ahead: &mut Ahead, invoicing: &Invoicing) -> Checked {
    let Invoicing { period, carried_millicents, .. } = invoicing;
    let key = (period.month.number(), period.merchant.bits());
    let stored = held(group, key)?.period.as_ref();
    let is_as_read = stored == Some(period) && period.is_unsettled();
    // One batch bills a merchant once: what an earlier step of it changes is not as it was read.
    if !is_as_read || !ahead.sold.insert(key.1) {
        return conflict(format_args!("the period {} of merchant {}", period.month, period.merchant));
    }
    if *carried_millicents != 0 {
        held(group, (period.month.next().number(), key.1))?;
    }
    Ok(Ok(()))
}

/// Gives a period its invoice, or its invoice another session.
pub(crate) fn invoice(group: &mut Group<'_>, invoicing: Invoicing) -> Result<(), Fault> {
    let Invoicing { period, invoice, carried_millicents, at } = invoicing;
    let key = (period.month.number(), period.merchant.bits());
    if let Some((session, _)) = &invoice.session {
        group.tables.invoice_sessions().insert(session.bits(), key);
    }
    let held = held(group, key)?;
    held.is_changed = true;
    if let Some(stored) = held.period.as_mut() {
        stored.updated_at = stored.updated_at.max(at);
        stored.invoice = Some(invoice);
    }
    if carried_millicents != 0 {
        open_from(group, key.1, period.month.next(), at)?.usage.carry(carried_millicents);
    }
    Ok(())
}

/// Tiers replace those that were read.
pub(crate) fn check_tiers(group: &mut Group<'_>, ahead: &mut Ahead, schedule: &Schedule, expected: u64) -> Checked {
    let stored = match ahead.tiers_version {
        Some(version) => version,
        None => match single::read(&group.tables.meta(), meta::FEE_TIERS)? {
            Some(bytes) => record::schedule_from_bytes(&bytes).map_err(damaged_tiers)?.version,
            None => 0,
        },
    };
    if stored != expected {
        return conflict("the fee tiers");
    }
    ahead.tiers_version = Some(schedule.version);
    Ok(Ok(()))
}

fn damaged_tiers(damage: Damage) -> Fault {
    Fault::contradicted("meta", meta::FEE_TIERS, damage)
}

/// Writes what changed.
pub(crate) fn write_all(group: &mut Group<'_>) -> Result<(), Fault> {
    for (key, held) in std::mem::take(&mut group.periods) {
        let Some(period) = held.period.filter(|_| held.is_changed) else { continue };
        group.tables.billing().insert(key, record::period_to_bytes(&period).as_slice());
        match (held.was_unsettled, period.is_unsettled()) {
            (false, true) => group.tables.unsettled().insert(key, ()),
            (true, false) => group.tables.unsettled().remove(key)?,
            _ => {}
        }
    }
    Ok(())
}

/// Returns a merchant's month.
pub(crate) fn period(snapshot: &Snapshot, merchant: MerchantId, month: Month) -> Result<Option<Period>, Fault> {
    let key = (month.number(), merchant.bits());
    match snapshot.billing().get(key)? {
        Some(bytes) => read(key, bytes.value()).map(Some),
        None => Ok(None),
    }
}

/// Returns a merchant's periods, newest first. The table orders by month, so that each month is one point read.
pub(crate) fn periods_of(snapshot: &Snapshot, merchant: MerchantId) -> Result<Vec<Period>, Fault> {
    let table = snapshot.billing();
    let (Some((first, _)), Some((last, _))) = (table.first()?, table.last()?) else { return Ok(Vec::new()) };
    let months = first.value().0..=last.value().0;
    let mut periods = Vec::new();
    for number in months.rev() {
        let key = (number, merchant.bits());
        if let Some(bytes) = table.get_sound(key)? {
            periods.extend(table.pass(read(key, bytes.value()))?);
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
        let Some(period) = table.pass(read(key.value(), bytes.value()))? else { continue };
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
            Ok(None) => Err(Fault::contradicted("billing", format!("{key:?}"), "it is not there")),
            Err(fault) => Err(fault),
        };
        found.extend(records.pass(period)?);
    }
    Ok(found)
}

/// Returns what every merchant's periods come to, by merchant.
pub(crate) fn accounts(snapshot: &Snapshot, now: Timestamp) -> Result<Vec<Account>, Fault> {
    let mut accounts = BTreeMap::new();
    let table = snapshot.billing();
    for entry in table.iter()? {
        let (key, bytes) = entry?;
        let Some(period) = table.pass(read(key.value(), bytes.value()))? else { continue };
        accounts.entry(period.merchant).or_insert_with(|| Account::of(period.merchant)).add(&period, now);
    }
    Ok(accounts.into_values().collect())
}

/// Returns the stored tiers.
pub(crate) fn schedule(snapshot: &Snapshot) -> Result<Option<Schedule>, Fault> {
    match single::read(&snapshot.meta(), meta::FEE_TIERS)? {
        Some(bytes) => record::schedule_from_bytes(&bytes).map(Some).map_err(damaged_tiers),
        None => Ok(None),
    }
}
