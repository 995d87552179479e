//! The sums of a merchant's days, kept as they happen: how many payments of each facet were made on a day, what came in, and
//! how long it took. Totals of lists, pages far from the first, and the overview read a row a day instead of a payment each.
//!
//! Sums wrap around at 2^64: that changes nothing of what is added and taken away again, and the ledger's whole supply is
//! far below.

use std::{collections::BTreeMap, time::Duration};

use engine::{
    ids::{MerchantId, PaymentId},
    money::Currency,
    mutant,
    payment::State,
};

use crate::{
    embedded::{
        commit::apply::Group,
        fault::Fault,
        read::listed::{self, FACETS, Facets, Ids, common},
        wal::snapshot::Snapshot,
    },
    record::{self, Summary},
    store::query::{DayVolume, Volume, VolumeQuery},
};

/// The key of a day: merchant, whole days of UTC since 1970.
pub(crate) type DayKey = (u128, u64);

const DAY_MS: u64 = 86_400_000;

/// Returns the day on which a payment was made.
pub(crate) fn day_of(id: u128) -> u64 {
    PaymentId::from_bits(id).made_at().millis() / DAY_MS
}

/// Returns the ids made on a day.
fn ids_of(day: u64) -> Ids {
    let start = |day: u64| engine::time::Timestamp::from_millis(day.saturating_mul(DAY_MS));
    listed::ids_made(Some(start(day)), Some(start(day.saturating_add(1))))
}

/// The sums of one day, or what changes in them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct DaySums {
    /// Payments made, by facet.
    pub(crate) made: [u64; FACETS],
    /// Payments made that are sales, not invoices; the rest is of these alone.
    pub(crate) opened: u64,
    /// Those of them that ended.
    pub(crate) ended: u64,
    /// Those of them that completed.
    pub(crate) completed: u64,
    /// What completed in HIVE, smallest units.
    pub(crate) hive_units: u64,
    /// What completed in HBD, smallest units.
    pub(crate) hbd_units: u64,
    /// What completed, in US cents.
    pub(crate) usd_cents: u64,
    /// How long those that completed waited: payments by bucket.
    pub(crate) waits: BTreeMap<u32, u64>,
}

impl DaySums {
    /// Adds a payment.
    pub(crate) fn add(&mut self, payment: &Summary) {
        self.count(payment, 1);
    }

    /// Takes a payment away that was added.
    fn take(&mut self, payment: &Summary) {
        self.count(payment, 1_u64.wrapping_neg());
    }

    fn count(&mut self, payment: &Summary, times: u64) {
        let plus = |sum: &mut u64, value: u64| *sum = sum.wrapping_add(value.wrapping_mul(times));
        plus(&mut self.made[usize::from(listed::facet(payment))], 1);
        if payment.is_invoice {
            return;
        }
        plus(&mut self.opened, 1);
        plus(&mut self.ended, u64::from(payment.state.is_terminal()));
        if let Some(at) = payment.completed_at {
            let wait = u64::try_from(at.since(payment.created_at).as_millis()).unwrap_or(u64::MAX);
            plus(self.waits.entry(bucket_of(wait)).or_default(), 1);
        }
        if payment.state == State::Completed {
            plus(&mut self.completed, 1);
            plus(&mut self.usd_cents, payment.usd_cents);
            let units = match payment.amount.currency {
                Currency::Hive => &mut self.hive_units,
                Currency::Hbd => &mut self.hbd_units,
            };
            plus(units, payment.amount.units);
        }
    }

    /// Adds what changed.
    fn merge(&mut self, change: &Self) {
        let plus = |sum: &mut u64, change: u64| *sum = sum.wrapping_add(change);
        self.made.iter_mut().zip(change.made).for_each(|(sum, change)| plus(sum, change));
        plus(&mut self.opened, change.opened);
        plus(&mut self.ended, change.ended);
        plus(&mut self.completed, change.completed);
        plus(&mut self.hive_units, change.hive_units);
        plus(&mut self.hbd_units, change.hbd_units);
        plus(&mut self.usd_cents, change.usd_cents);
        change.waits.iter().for_each(|(bucket, change)| plus(self.waits.entry(*bucket).or_default(), *change));
        self.waits.retain(|_, count| *count != 0);
    }

    /// Says whether no count is below none.
    fn is_possible(&self) -> bool {
        const MOST: u64 = u64::MAX / 2;
        self.made.iter().chain(self.waits.values()).all(|count| *count < MOST)
    }

    fn made_of(&self, facets: Facets) -> u64 {
        facets.iter().filter_map(|facet| self.made.get(usize::from(facet))).sum()
    }
}

/// Buckets of waits up to so many milliseconds are one wide; above, each power of two is divided into half as many.
const EXACT_MS: u64 = 64;

/// Returns the bucket of a wait in milliseconds.
fn bucket_of(wait: u64) -> u32 {
    if wait < EXACT_MS {
        return wait.try_into().expect("it is small");
    }
    let doublings = wait.ilog2() - EXACT_MS.ilog2() + 1;
    // The six highest bits, of which the first is always set.
    let within = u32::try_from(wait >> doublings).expect("six bits are left");
    doublings * 32 + within
}

/// Returns the middle of a bucket, at most one part in 64 from every wait in it.
fn middle_of(bucket: u32) -> u64 {
    if u64::from(bucket) < EXACT_MS {
        return u64::from(bucket);
    }
    let doublings = bucket / 32 - 1;
    let within = u64::from(bucket - doublings * 32);
    // A bucket that nothing is ever put into may stand in no row either.
    within.checked_shl(doublings).unwrap_or(u64::MAX).saturating_add(1_u64.checked_shl(doublings).unwrap_or(0) / 2)
}

/// Notes that a payment was made, or that what its list says of it changed.
pub(crate) fn change(group: &mut Group<'_>, merchant: u128, id: u128, before: Option<&Summary>, after: &Summary) {
    if before == Some(after) || (before.is_some() && mutant!("day-not-counted")) {
        return;
    }
    let day = group.days.entry((merchant, day_of(id))).or_default();
    if let Some(before) = before {
        day.take(before);
    }
    day.add(after);
}

/// Writes the sums of the days that the group changed; the list is written already.
pub(crate) fn write_all(group: &mut Group<'_>) -> Result<(), Fault> {
    for (key, change) in std::mem::take(&mut group.days) {
        let mut sums = read(group.tables.snapshot(), key)?.map(Option::unwrap_or_default);
        if let Some(sums) = &mut sums {
            sums.merge(&change);
        }
        let sums = match sums.filter(DaySums::is_possible) {
            Some(sums) => sums,
            None => recount(group.tables.snapshot(), key, Facets::ALL, &listed::ANY_ID)?,
        };
        group.tables.payment_days().insert(key, record::sums_to_bytes(&sums).as_slice());
    }
    Ok(())
}

/// Returns the sums of a day; the outer is none where its row is damaged, the inner where there is no row.
fn read(snapshot: &Snapshot, key: DayKey) -> Result<Option<Option<DaySums>>, Fault> {
    let table = snapshot.payment_days();
    table.pass(table.get(key).and_then(|found| {
        let named = || format!("{} of {}", key.1, MerchantId::from_bits(key.0));
        found
            .map(|bytes| record::sums_from_bytes(bytes.value()))
            .transpose()
            .map_err(|damage| Fault::contradicted("payment_days", named(), damage))
    }))
}

/// Adds up the payments of a day anew, those of some facets and ids.
fn recount(snapshot: &Snapshot, (merchant, day): DayKey, facets: Facets, ids: &Ids) -> Result<DaySums, Fault> {
    let mut sums = DaySums::default();
    for listed in listed::newest(snapshot, merchant, facets, common(&ids_of(day), ids))? {
        sums.add(&listed?.1);
    }
    Ok(sums)
}

/// How many payments of a list were made on each day.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// The days that have any, oldest first: the day, how many, and whether there are more.
    days: Vec<(u64, u64, bool)>,
}

impl Tally {
    /// Returns how many there are in all.
    pub(crate) fn total(&self) -> u64 {
        self.days.iter().map(|(_, count, _)| count).sum()
    }

    /// Says whether the first or the last day holds more than were counted.
    pub(crate) fn is_lower_bound(&self) -> bool {
        self.days.iter().any(|(_, _, has_more)| *has_more)
    }

    /// Returns the greatest id that may be among those after the `skipped` newest, and how many of them stand before those
    /// still.
    pub(crate) fn after(&self, mut skipped: u64) -> (u128, u64) {
        let mut last = u128::MAX;
        for (day, count, has_more) in self.days.iter().rev() {
            if *count > skipped || *has_more {
                break;
            }
            skipped -= count;
            last = ids_of(*day).start().saturating_sub(1);
        }
        (last, skipped)
    }
}

/// Counts the payments of some facets and ids, day by day: a row for a whole day. Of a day at the edge at most `edge_max` are
/// counted.
pub(crate) fn tally(
    snapshot: &Snapshot,
    merchant: u128,
    facets: Facets,
    ids: &Ids,
    edge_max: u64,
) -> Result<Tally, Fault> {
    let mut tally = Tally::default();
    if ids.is_empty() {
        return Ok(tally);
    }
    let span = (merchant, day_of(*ids.start()))..=(merchant, day_of(*ids.end()));
    for key in snapshot.payment_days().range::<DayKey>(span)?.all_keys() {
        let key = key?.value();
        let whole = ids_of(key.1);
        let (mut count, mut has_more) = (0, false);
        if common(&whole, ids) == whole {
            count = match read(snapshot, key)? {
                Some(sums) => sums.unwrap_or_default().made_of(facets),
                None => recount(snapshot, key, facets, ids)?.made_of(facets),
            };
        } else {
            for listed in listed::newest(snapshot, merchant, facets, common(&whole, ids))? {
                listed?;
                has_more = count == edge_max;
                if has_more {
                    break;
                }
                count += 1;
            }
        }
        if count > 0 {
            tally.days.push((key.1, count, has_more));
        }
    }
    Ok(tally)
}

/// Returns the sums of the days that were asked for.
pub(crate) fn volume(snapshot: &Snapshot, query: &VolumeQuery) -> Result<Volume, Fault> {
    let merchant = query.merchant.bits();
    let first = query.last_day.saturating_sub(query.days.saturating_sub(1));
    let mut volume = Volume {
        days: (first..=query.last_day).map(|day| DayVolume { day, ..DayVolume::default() }).collect(),
        median_wait: None,
    };
    let mut waits = BTreeMap::<u32, u64>::new();
    let span = (merchant, first)..=(merchant, query.last_day);
    for key in snapshot.payment_days().range::<DayKey>(span)?.all_keys() {
        let key = key?.value();
        let sums = match read(snapshot, key)? {
            Some(sums) => sums.unwrap_or_default(),
            None => recount(snapshot, key, Facets::ALL, &listed::ANY_ID)?,
        };
        let place = key.1.checked_sub(first).and_then(|place| usize::try_from(place).ok());
        if let Some(day) = place.and_then(|place| volume.days.get_mut(place)) {
            let DaySums { opened, ended, completed, hive_units, hbd_units, usd_cents, .. } = sums;
            *day = DayVolume { day: day.day, opened, completed, ended, hive_units, hbd_units, usd_cents };
        }
        sums.waits.iter().for_each(|(bucket, count)| *waits.entry(*bucket).or_default() += count);
    }
    volume.median_wait = median(&waits).map(Duration::from_millis);
    Ok(volume)
}

fn median(waits: &BTreeMap<u32, u64>) -> Option<u64> {
    let mut before = waits.values().sum::<u64>() / 2;
    for (bucket, count) in waits {
        if before < *count {
            return Some(middle_of(*bucket));
        }
        before -= count;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_tells_a_wait_to_one_part_in_sixty_four() {
        let day = 86_400_000;
        for wait in (0..2_000).chain((0..50_000).map(|step| step * step)).chain([day, 365 * day, u64::MAX]) {
            let told = middle_of(bucket_of(wait));
            assert!(told.abs_diff(wait) <= wait / 64, "{wait} is told as {told}");
        }
        let buckets: Vec<u32> = (0..100_000).map(bucket_of).collect();
        assert!(buckets.windows(2).all(|pair| pair[1] == pair[0] || pair[1] == pair[0] + 1), "none is left out");
    }

    #[test]
    fn the_middle_wait_is_the_upper_one_of_two() {
        let waits = |waits: &[u64]| {
            let mut buckets = BTreeMap::new();
            waits.iter().for_each(|wait| *buckets.entry(bucket_of(*wait)).or_default() += 1);
            median(&buckets)
        };
        assert_eq!(waits(&[]), None);
        assert_eq!(waits(&[5]), Some(5));
        assert_eq!(waits(&[9, 30]), Some(30));
        assert_eq!(waits(&[60, 1, 2, 2, 50]), Some(2));
    }
}
