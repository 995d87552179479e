//! Idempotency keys, quotas, compliance, billing, the audit log and single values.

use engine::{
    audit::Entry,
    billing::{Month, Period, PeriodChange, Schedule},
    compliance::{ComplianceChange, PaymentCheck},
    event_list::Epoch,
    idempotency::{self, IdempotencyRecord, Refusal},
    ids::{MerchantId, PaymentId},
    payment::Rate,
    quota::Quota,
    reconciliation::Day,
    time::Timestamp,
    x402::ReceiptKeys,
};

use crate::{
    batch::{CommitError, Cursor, Invoicing},
    embedded::tables::meta,
    postgres::{
        commit::{
            merchants,
            working::{Checked, Working, conflict},
        },
        fault::Fault,
        tables::business::{ComplianceRow, IdempotencyRow, InvoiceRow, PeriodRow, ReconciledRow, SingleRow},
    },
    record::{self, vault::Vault},
};

/// Idempotency keys forgotten by one commit at most.
pub(crate) const MAX_FORGOTTEN_KEYS: i64 = 1_000;

/// Inserts an idempotency key unless it belongs to an earlier request.
pub(crate) fn remember(working: &mut Working, new: &IdempotencyRecord, most: u64) -> Checked {
    let key = (new.merchant.bits(), new.key);
    let stored = working.idempotency.get(&key).map(|row| row.0);
    let count = || Ok(working.usage.get(&key.0).copied().unwrap_or_default().keys_before_batch());
    match idempotency::admit::<Fault>(stored.as_ref(), true, new.at, most, count)? {
        Ok(()) => {}
        Err(Refusal::Repeated(stored)) => return Ok(Err(CommitError::Remembered(stored))),
        Err(Refusal::Full) => return Ok(Err(CommitError::KeysFull)),
    }
    if stored.is_none() {
        working.count(key.0).idempotency_keys += 1;
    }
    working.idempotency.put(key, IdempotencyRow(*new));
    Ok(Ok(()))
}

/// Deletes idempotency keys that were created earlier.
pub(crate) fn forget(working: &mut Working, made_before: Timestamp) {
    let old = working.idempotency.iter().filter(|(_, row)| row.0.at < made_before);
    let mut old: Vec<_> = old.map(|(key, row)| (row.0.at, *key)).collect();
    old.sort_unstable();
    old.truncate(usize::try_from(MAX_FORGOTTEN_KEYS).unwrap_or(usize::MAX));
    for (_, key) in old {
        working.idempotency.set(key, None);
        working.count(key.0).idempotency_keys -= 1;
    }
}

/// Checks a creation against its merchant's quota and everything committed before it. Creations that other engines commit at the
/// same moment are not counted.
pub(crate) fn admit(working: &Working, payment: PaymentId, merchant: MerchantId, quota: Quota) -> Checked {
    let usage = working.usage.get(&merchant.bits()).copied().unwrap_or_default().before_batch();
    let bytes = working.payments.get(&payment.bits()).map_or(0, |row| row.facts.bytes);
    Ok(quota.check(usage, bytes).map_err(CommitError::QuotaReached))
}

fn compliance(working: &Working, merchant: u128) -> ComplianceRow {
    working.compliance.get(&merchant).cloned().unwrap_or_default()
}

/// Checks a creation against the limits of its merchant and of those that have proven the account.
pub(crate) fn comply(working: &mut Working, check: &PaymentCheck) -> Checked {
    let merchant = check.merchant.bits();
    let provers = merchants::provers(working, &check.account);
    let others = provers.into_iter().filter(|other| *other != merchant);
    let others: Vec<_> = others.map(|other| compliance(working, other).status).collect();
    let row = compliance(working, merchant);
    let noted = match row.status.check(check, &others) {
        Ok(noted) => noted,
        Err(refusal) => return Ok(Err(CommitError::OnHold(refusal))),
    };
    if let Some(noted) = noted {
        working.audit.extend(noted.audit_entries(check));
        let row = ComplianceRow { version: row.version + 1, status: noted.status };
        working.compliance.put(merchant, row);
    }
    Ok(Ok(()))
}

/// Changes a compliance status that the change starts from.
pub(crate) fn change_compliance(working: &mut Working, merchant: MerchantId, change: &ComplianceChange) -> Checked {
    let ComplianceRow { version, mut status } = compliance(working, merchant.bits());
    if !status.accepts(change) {
        return conflict(format_args!("where merchant {merchant} stands"));
    }
    status.apply(change.clone());
    working.compliance.put(merchant.bits(), ComplianceRow { version: version + 1, status });
    Ok(Ok(()))
}

/// Adds a completed payment to its merchant's volume.
pub(crate) fn count_completed(working: &mut Working, merchant: u128, at: Timestamp, usd_cents: u64) {
    let ComplianceRow { version, mut status } = compliance(working, merchant);
    status.record_completed(at, usd_cents);
    working.compliance.put(merchant, ComplianceRow { version: version + 1, status });
}

/// Returns the first month from `month` on whose period is open. The last representable month has no successor.
fn open_month(working: &Working, merchant: u128, mut month: Month) -> Month {
    let is_closed =
        |month: Month| working.periods.get(&(merchant, month.number())).is_some_and(|row| row.period.is_closed());
    while is_closed(month) && month != month.next() {
        month = month.next();
    }
    month
}

/// Changes a period; one that is not there begins.
fn with_period(working: &mut Working, merchant: u128, month: Month, now: Timestamp, change: impl FnOnce(&mut Period)) {
    let key = (merchant, month.number());
    let stored = working.periods.get(&key).cloned();
    let version = stored.as_ref().map_or(0, |row| row.version) + 1;
    let begin = || Period::begin(MerchantId::from_bits(merchant), month, now);
    let mut period = stored.map_or_else(begin, |row| row.period);
    change(&mut period);
    working.periods.put(key, PeriodRow { version, period });
}

/// Counts what a write of a payment means for billing.
pub(crate) fn change_period(
    working: &mut Working,
    payment: PaymentId,
    merchant: u128,
    change: &PeriodChange,
    now: Timestamp,
) {
    if let Some(month) = change.month() {
        working.sold.insert(merchant);
        let month = open_month(working, merchant, month);
        with_period(working, merchant, month, now, |period| {
            period.apply(change, now);
        });
        return;
    }
    let Some(InvoiceRow(number, merchant)) = working.invoices.get(&payment.bits()).copied() else { return };
    working.sold.insert(merchant);
    if let Some(PeriodRow { version, mut period }) = working.periods.get(&(merchant, number)).cloned()
        && period.apply(change, now)
    {
        working.periods.put((merchant, number), PeriodRow { version: version + 1, period });
    }
}

/// Gives a period its invoice, or its invoice another session: for a period as it was read, and for nothing that was counted or
/// billed meanwhile. One batch bills a merchant once.
pub(crate) fn invoice(working: &mut Working, invoicing: &Invoicing) -> Checked {
    let Invoicing { period, invoice, carried_millicents, at } = invoicing;
    let (merchant, number) = (period.merchant.bits(), period.month.number());
    let stored = working.periods.get(&(merchant, number));
    let is_as_read = stored.is_some_and(|row| row.period.accepts_invoice_for(period));
    if !is_as_read || !working.sold.insert(merchant) {
        return conflict(format_args!("the period {} of merchant {}", period.month, period.merchant));
    }
    if let Some((session, _)) = &invoice.session {
        working.invoices.put(session.bits(), InvoiceRow(number, merchant));
    }
    with_period(working, merchant, period.month, *at, |period| period.set_invoice(invoice.clone(), *at));
    if *carried_millicents != 0 {
        let month = open_month(working, merchant, period.month.next());
        with_period(working, merchant, month, *at, |period| period.carry(*carried_millicents, *at));
    }
    Ok(Ok(()))
}

/// Writes the reconciliation of a day in place of the one that was made at `expected`. A damaged one counts as none.
pub(crate) fn reconcile(working: &mut Working, day: &Day, expected: Option<Timestamp>) -> Checked {
    let stored = working.reconciled.get(&day.from);
    if stored.and_then(|row| row.checked_at) != expected {
        return conflict(format_args!("the reconciliation of {}", day.from));
    }
    let version = stored.map_or(0, |row| row.version) + 1;
    working.reconciled.put(day.from, ReconciledRow::of(version, day));
    Ok(Ok(()))
}

/// Writes the price of HIVE in place of the one that was read at `expected`.
pub(crate) fn rate(working: &mut Working, rate: Rate, expected: Option<Timestamp>) -> Checked {
    if single(working, meta::RATE, record::rate_from_bytes)?.map(|rate| rate.at) != expected {
        return conflict("the price of HIVE");
    }
    set(working, meta::RATE, record::rate_to_bytes(rate));
    Ok(Ok(()))
}

/// Writes a named value in place of `expected`.
pub(crate) fn note(working: &mut Working, name: &str, value: &[u8], expected: Option<&[u8]>) -> Checked {
    let key = meta::note(name);
    if working.singles.get(&key).map(|row| row.value.as_slice()) != expected {
        return conflict(format_args!("the note {name}"));
    }
    set(working, &key, value.to_vec());
    Ok(Ok(()))
}

/// Appends an entry to the audit log.
pub(crate) fn audit(working: &mut Working, entry: &Entry) {
    working.audit.push(entry.clone());
}

/// Sets a single value.
pub(crate) fn set(working: &mut Working, name: &str, value: Vec<u8>) {
    let version = working.singles.get(&name.to_owned()).map_or(0, |row| row.version) + 1;
    working.singles.put(name.to_owned(), SingleRow { version, value });
}

pub(crate) fn single<T>(
    working: &Working,
    name: &'static str,
    decode: impl FnOnce(&[u8]) -> Result<T, record::wire::Damage>,
) -> Result<Option<T>, Fault> {
    let row = working.singles.get(&name.to_owned());
    row.map(|row| decode(&row.value)).transpose().map_err(Fault::damaged("single_values", name))
}

/// Advances the cursor from `expected`.
pub(crate) fn cursor(working: &mut Working, cursor: &Cursor, expected: Option<&Cursor>) -> Checked {
    if single(working, meta::CURSOR, record::cursor_from_bytes)?.as_ref() != expected {
        return conflict("the cursor");
    }
    set(working, meta::CURSOR, record::cursor_to_bytes(cursor));
    Ok(Ok(()))
}

/// Replaces the fee tiers that were read.
pub(crate) fn tiers(working: &mut Working, schedule: &Schedule, expected: u64) -> Checked {
    assert!(schedule.version > expected, "a version grows with every write");
    let stored = single(working, meta::FEE_TIERS, record::schedule_from_bytes)?;
    if stored.map_or(0, |schedule| schedule.version) != expected {
        return conflict("the fee tiers");
    }
    set(working, meta::FEE_TIERS, record::schedule_to_bytes(schedule));
    Ok(Ok(()))
}

/// Replaces the keys that sign offers and receipts, if they are the ones that were read.
pub(crate) fn receipt_keys(working: &mut Working, keys: &ReceiptKeys, expected: u64, vault: &Vault) -> Checked {
    assert!(keys.version > expected, "a version grows with every write");
    if single(working, meta::RECEIPT_KEYS, record::receipt_keys_version)?.unwrap_or(0) != expected {
        return conflict("the receipt keys");
    }
    set(working, meta::RECEIPT_KEYS, record::receipt_keys_to_bytes(keys, vault));
    Ok(Ok(()))
}

/// Returns the epochs of the store after the first.
pub(crate) fn epochs(working: &Working) -> Result<Vec<Epoch>, Fault> {
    Ok(single(working, meta::EPOCHS, record::epochs_from_bytes)?.unwrap_or_default())
}

/// Begins the epoch that follows a restore.
pub(crate) fn begin_epoch(working: &mut Working, epoch: Epoch) -> Checked {
    let mut epochs = epochs(working)?;
    if epochs.pop() != Some(Epoch::PENDING) {
        return conflict("the epoch");
    }
    epochs.push(epoch);
    set(working, meta::EPOCHS, record::epochs_to_bytes(&epochs));
    Ok(Ok(()))
}
