//! What follows from the payments that a group changes: counts of usage, sums of days, and what is to be indexed. Each engine adds
//! to rows of its own slot, so that engines do not wait for one another.

use std::collections::BTreeMap;

use engine::payment::State;

use crate::{
    embedded::read::days::day_of,
    postgres::{
        commit::working::Working,
        statement::Statement,
        values::{Cell, Columns, Kind, signed},
    },
    record::{
        summary::{Summary, facet},
        sums::bucket_of,
    },
};

/// Merchant, day, facet and whether it is an invoice.
type DayKey = (u128, u64, u8, bool);

/// Payments, units and US cents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Sum {
    payments: i64,
    units: i64,
    usd_cents: i64,
}

/// Adds what the group changes in the usage of merchants.
pub(crate) fn write_usage(working: &Working, slot: i16, statement: &mut Statement) {
    let mut rows = Columns::of([Kind::Uuid, Kind::Small, Kind::Integer, Kind::Integer, Kind::Integer]);
    for (merchant, usage) in &working.usage {
        let change = usage.change;
        if change != Default::default() {
            let counts = [change.open_payments, change.stored_bytes, change.idempotency_keys];
            let counts = counts.map(|count| Cell::Integer(Some(count)));
            rows.push([Cell::from(*merchant), Cell::Small(slot)].into_iter().chain(counts));
        }
    }
    if rows.rows > 0 {
        statement.add(format_args!("merchant_usage_changed"), USAGE, rows, None);
    }
}

const USAGE: &str = "INSERT INTO merchant_usage AS t (merchant_id, slot, open_payments, stored_bytes, idempotency_keys) \
     SELECT * FROM {unnest} ON CONFLICT (merchant_id, slot) DO UPDATE SET \
     open_payments = t.open_payments + excluded.open_payments, stored_bytes = t.stored_bytes + excluded.stored_bytes, \
     idempotency_keys = t.idempotency_keys + excluded.idempotency_keys";

/// Adds what the group changes in the sums of days.
pub(crate) fn write_days(working: &Working, slot: i16, statement: &mut Statement) {
    let mut days = BTreeMap::<DayKey, Sum>::new();
    let mut waits = BTreeMap::<(u128, u64, u32), i64>::new();
    for (id, before, now) in working.payments.changes() {
        let (before, now) = (before.map(|row| &row.facts), now.map(|row| &row.facts));
        if before.map(|facts| facts.summary) == now.map(|facts| facts.summary) {
            continue;
        }
        for (facts, times) in before.map(|facts| (facts, -1)).into_iter().chain(now.map(|facts| (facts, 1))) {
            let (day, summary) = (day_of(*id), &facts.summary);
            let sum = days.entry((facts.merchant, day, facet(summary), summary.is_invoice)).or_default();
            sum.payments += times;
            sum.units += times * signed(summary.amount.units);
            sum.usd_cents += times * signed(summary.usd_cents);
            if let Some(wait) = wait(summary) {
                *waits.entry((facts.merchant, day, bucket_of(wait))).or_default() += times;
            }
        }
    }
    days.retain(|_, sum| *sum != Sum::default());
    waits.retain(|_, count| *count != 0);
    write_sums(&days, slot, statement);
    write_waits(&waits, slot, statement);
}

/// Returns how long a payment took to complete, in milliseconds; none for an invoice, which is no sale.
pub(crate) fn wait(summary: &Summary) -> Option<u64> {
    let completed_at = summary.completed_at.filter(|_| !summary.is_invoice)?;
    Some(u64::try_from(completed_at.since(summary.created_at).as_millis()).unwrap_or(u64::MAX))
}

fn day_cell(day: u64) -> Cell {
    Cell::Whole(i32::try_from(day).unwrap_or(i32::MAX))
}

fn write_sums(days: &BTreeMap<DayKey, Sum>, slot: i16, statement: &mut Statement) {
    let kinds =
        [Kind::Uuid, Kind::Whole, Kind::Small, Kind::Flag, Kind::Small, Kind::Integer, Kind::Integer, Kind::Integer];
    let mut rows = Columns::of(kinds);
    for ((merchant, day, facet, is_invoice), sum) in days {
        let key = [Cell::from(*merchant), day_cell(*day), Cell::Small((*facet).into()), Cell::Flag(*is_invoice)];
        let sums = [sum.payments, sum.units, sum.usd_cents].map(|sum| Cell::Integer(Some(sum)));
        rows.push(key.into_iter().chain([Cell::Small(slot)]).chain(sums));
    }
    if rows.rows > 0 {
        statement.add(format_args!("payment_days_changed"), DAYS, rows, None);
    }
}

const DAYS: &str = "INSERT INTO payment_days AS t \
     (merchant_id, day, facet, is_invoice, slot, payments, amount_units, usd_cents) SELECT * FROM {unnest} \
     ON CONFLICT (merchant_id, day, facet, is_invoice, slot) DO UPDATE SET payments = t.payments + excluded.payments, \
     amount_units = t.amount_units + excluded.amount_units, usd_cents = t.usd_cents + excluded.usd_cents";

fn write_waits(waits: &BTreeMap<(u128, u64, u32), i64>, slot: i16, statement: &mut Statement) {
    let mut rows = Columns::of([Kind::Uuid, Kind::Whole, Kind::Whole, Kind::Small, Kind::Integer]);
    for ((merchant, day, bucket), count) in waits {
        let bucket = Cell::Whole(i32::try_from(*bucket).unwrap_or(i32::MAX));
        rows.push([Cell::from(*merchant), day_cell(*day), bucket, Cell::Small(slot), Cell::Integer(Some(*count))]);
    }
    if rows.rows > 0 {
        statement.add(format_args!("payment_waits_changed"), WAITS, rows, None);
    }
}

const WAITS: &str = "INSERT INTO payment_waits AS t (merchant_id, day, bucket, slot, payments) SELECT * FROM {unnest} \
     ON CONFLICT (merchant_id, day, bucket, slot) DO UPDATE SET payments = t.payments + excluded.payments";

/// Returns the payments that the group creates, which are to be indexed.
pub(crate) fn created(working: &Working) -> Vec<u128> {
    let new = working.payments.changes().filter(|(_, before, now)| before.is_none() && now.is_some());
    new.map(|(id, ..)| *id).collect()
}

/// Returns whether a state counts as open.
pub(crate) const fn is_open(state: State) -> bool {
    matches!(state, State::Pending | State::Processing)
}
