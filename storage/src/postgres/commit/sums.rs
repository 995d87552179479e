//! What follows from the payments that a group changes: counts of usage, sums of days, and what is to be indexed. Each engine adds
//! to rows of its own slot, so that engines do not wait for one another.

use std::collections::BTreeMap;

use engine::payment::State;

use crate::{
    embedded::read::days::day_of,
    postgres::{
        commit::working::{Counts, Working},
        statement::Statement,
        values::{Cell, Columns, Kind, signed},
        whole::Shape,
    },
    record::{
        indexed::PaymentFacts,
        summary::{Summary, facet},
        sums::bucket_of,
    },
};

/// Merchant, day, facet and whether it is an invoice.
pub(crate) type DayKey = (u128, u64, u8, bool);

/// Payments, units and US cents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Sum {
    pub(crate) payments: i64,
    pub(crate) units: i64,
    pub(crate) usd_cents: i64,
}

/// Sums of the payments of days, or changes of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct DayTotals {
    pub(crate) days: BTreeMap<DayKey, Sum>,
    /// Counts by merchant, day and bucket of the time to completion.
    pub(crate) waits: BTreeMap<(u128, u64, u32), i64>,
}

/// The columns of the sums of days.
pub(crate) const DAY_SHAPE: Shape = Shape::new(
    "payment_days",
    &[
        ("merchant_id", Kind::Uuid),
        ("day", Kind::Whole),
        ("facet", Kind::Small),
        ("is_invoice", Kind::Flag),
        ("slot", Kind::Small),
    ],
    &[("payments", Kind::Integer), ("amount_units", Kind::Integer), ("usd_cents", Kind::Integer)],
);

/// The columns of the times to completion.
pub(crate) const WAIT_SHAPE: Shape = Shape::new(
    "payment_waits",
    &[("merchant_id", Kind::Uuid), ("day", Kind::Whole), ("bucket", Kind::Whole), ("slot", Kind::Small)],
    &[("payments", Kind::Integer)],
);

/// The columns of the usage of merchants.
pub(crate) const USAGE_SHAPE: Shape = Shape::new(
    "merchant_usage",
    &[("merchant_id", Kind::Uuid), ("slot", Kind::Small)],
    &[("open_payments", Kind::Integer), ("stored_bytes", Kind::Integer), ("idempotency_keys", Kind::Integer)],
);

/// Returns the row of a merchant's usage.
pub(crate) fn usage_cells(merchant: u128, counts: Counts, slot: i16) -> Vec<Cell> {
    let Counts { open_payments, stored_bytes, idempotency_keys } = counts;
    let counts = [open_payments, stored_bytes, idempotency_keys].map(|count| Cell::Integer(Some(count)));
    [Cell::from(merchant), Cell::Small(slot)].into_iter().chain(counts).collect()
}

impl DayTotals {
    /// Adds a payment `times` times, which may be negative.
    pub(crate) fn add(&mut self, id: u128, facts: &PaymentFacts, times: i64) {
        let (day, summary) = (day_of(id), &facts.summary);
        let sum = self.days.entry((facts.merchant, day, facet(summary), summary.is_invoice)).or_default();
        sum.payments += times;
        sum.units += times * signed(summary.amount.units);
        sum.usd_cents += times * signed(summary.usd_cents);
        if let Some(wait) = wait(summary) {
            *self.waits.entry((facts.merchant, day, bucket_of(wait))).or_default() += times;
        }
    }

    /// Removes what is zero.
    pub(crate) fn trim(&mut self) {
        self.days.retain(|_, sum| *sum != Sum::default());
        self.waits.retain(|_, count| *count != 0);
    }

    /// Returns the rows of the sums in the order of [`DAY_SHAPE`].
    pub(crate) fn day_rows(&self, slot: i16) -> impl Iterator<Item = Vec<Cell>> {
        self.days.iter().map(move |((merchant, day, facet, is_invoice), sum)| {
            let key = [Cell::from(*merchant), day_cell(*day), Cell::Small((*facet).into()), Cell::Flag(*is_invoice)];
            let sums = [sum.payments, sum.units, sum.usd_cents].map(|sum| Cell::Integer(Some(sum)));
            key.into_iter().chain([Cell::Small(slot)]).chain(sums).collect()
        })
    }

    /// Returns the rows of the times to completion in the order of [`WAIT_SHAPE`].
    pub(crate) fn wait_rows(&self, slot: i16) -> impl Iterator<Item = Vec<Cell>> {
        self.waits.iter().map(move |((merchant, day, bucket), count)| {
            let bucket = Cell::Whole(i32::try_from(*bucket).unwrap_or(i32::MAX));
            vec![Cell::from(*merchant), day_cell(*day), bucket, Cell::Small(slot), Cell::Integer(Some(*count))]
        })
    }
}

/// Sums of all payments and idempotency keys.
#[derive(Debug, Default)]
pub(crate) struct Sums {
    pub(crate) usage: BTreeMap<u128, Counts>,
    pub(crate) totals: DayTotals,
}

impl Sums {
    /// Counts a payment.
    pub(crate) fn payment(&mut self, id: u128, facts: &PaymentFacts) {
        let usage = self.usage.entry(facts.merchant).or_default();
        usage.open_payments += i64::from(is_open(facts.state));
        usage.stored_bytes += signed(facts.bytes);
        self.totals.add(id, facts, 1);
    }

    /// Counts an idempotency key.
    pub(crate) fn key(&mut self, merchant: u128) {
        self.usage.entry(merchant).or_default().idempotency_keys += 1;
    }
}

/// Adds what the group changes in the usage of merchants.
pub(crate) fn write_usage(working: &Working, slot: i16, statement: &mut Statement) {
    let changed = working.usage.iter().filter(|(_, usage)| usage.change != Counts::default());
    let rows = changed.map(|(merchant, usage)| usage_cells(*merchant, usage.change, slot));
    write_rows(&USAGE_SHAPE, format_args!("merchant_usage_changed"), USAGE, rows, statement);
}

fn write_rows(
    shape: &Shape,
    name: std::fmt::Arguments<'_>,
    sql: &str,
    cells: impl Iterator<Item = Vec<Cell>>,
    statement: &mut Statement,
) {
    let mut rows = Columns::of(shape.columns().map(|(_, kind)| *kind));
    cells.for_each(|cells| rows.push(cells));
    if rows.rows > 0 {
        statement.add(name, sql, rows, None);
    }
}

const USAGE: &str = "INSERT INTO merchant_usage AS t (merchant_id, slot, open_payments, stored_bytes, idempotency_keys) \
     SELECT * FROM {unnest} ON CONFLICT (merchant_id, slot) DO UPDATE SET \
     open_payments = t.open_payments + excluded.open_payments, stored_bytes = t.stored_bytes + excluded.stored_bytes, \
     idempotency_keys = t.idempotency_keys + excluded.idempotency_keys";

/// Adds what the group changes in the sums of days.
pub(crate) fn write_days(working: &Working, slot: i16, statement: &mut Statement) {
    let mut totals = DayTotals::default();
    for (id, before, now) in working.payments.changes() {
        let (before, now) = (before.map(|row| &row.facts), now.map(|row| &row.facts));
        if before.map(|facts| facts.summary) == now.map(|facts| facts.summary) {
            continue;
        }
        for (facts, times) in before.map(|facts| (facts, -1)).into_iter().chain(now.map(|facts| (facts, 1))) {
            totals.add(*id, facts, times);
        }
    }
    totals.trim();
    write_rows(&DAY_SHAPE, format_args!("payment_days_changed"), DAYS, totals.day_rows(slot), statement);
    write_rows(&WAIT_SHAPE, format_args!("payment_waits_changed"), WAITS, totals.wait_rows(slot), statement);
}

/// Returns how long a payment took to complete, in milliseconds; none for an invoice, which is no sale.
pub(crate) fn wait(summary: &Summary) -> Option<u64> {
    let completed_at = summary.completed_at.filter(|_| !summary.is_invoice)?;
    Some(u64::try_from(completed_at.since(summary.created_at).as_millis()).unwrap_or(u64::MAX))
}

fn day_cell(day: u64) -> Cell {
    Cell::Whole(i32::try_from(day).unwrap_or(i32::MAX))
}

const DAYS: &str = "INSERT INTO payment_days AS t \
     (merchant_id, day, facet, is_invoice, slot, payments, amount_units, usd_cents) SELECT * FROM {unnest} \
     ON CONFLICT (merchant_id, day, facet, is_invoice, slot) DO UPDATE SET payments = t.payments + excluded.payments, \
     amount_units = t.amount_units + excluded.amount_units, usd_cents = t.usd_cents + excluded.usd_cents";

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
