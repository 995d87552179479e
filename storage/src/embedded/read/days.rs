//! The sums of a merchant's days, kept as they happen: how many payments of each facet were made on a day, what came in, and
//! how long it took. Totals of lists, pages far from the first, and the overview read a row a day instead of a payment each.
//!
//! Sums wrap around at 2^64: that changes nothing of what is added and taken away again, and the ledger's whole supply is
//! far below.

use std::{collections::BTreeMap, time::Duration};

use engine::ids::{MerchantId, PaymentId};

use crate::{
    embedded::{
        fault::Fault,
        read::listed::{self, Facets, Ids, common},
        tables::DayKey,
        wal::snapshot::Snapshot,
    },
    record::{
        self,
        sums::{DaySums, middle_of},
    },
    store::payments::{DayVolume, Volume, VolumeQuery},
};

const DAY_MS: u64 = 86_400_000;

/// Returns the day on which a payment was made.
pub(crate) fn day_of(id: u128) -> u64 {
    PaymentId::from_bits(id).created_at().millis() / DAY_MS
}

/// Returns the ids made on a day.
pub(crate) fn ids_of(day: u64) -> Ids {
    let start = |day: u64| engine::time::Timestamp::from_millis(day.saturating_mul(DAY_MS));
    listed::ids_made(Some(start(day)), Some(start(day.saturating_add(1))))
}

/// Returns the sums of a day; the outer is none where its row is damaged, the inner where there is no row.
pub(crate) fn read(snapshot: &Snapshot, key: DayKey) -> Result<Option<Option<DaySums>>, Fault> {
    let table = snapshot.payment_days();
    table.pass(table.get(key).and_then(|found| {
        let named = || format!("{} of {}", key.1, MerchantId::from_bits(key.0));
        found
            .map(|bytes| record::sums_from_bytes(bytes.value()))
            .transpose()
            .map_err(|damage| Fault::inconsistent("payment_days", named(), damage))
    }))
}

/// Returns how many payments of some facets were made.
fn made_of(sums: &DaySums, facets: Facets) -> u64 {
    facets.iter().filter_map(|facet| sums.made.get(usize::from(facet))).sum()
}

/// Adds up the payments of a day anew, those of some facets and ids.
pub(crate) fn recount(
    snapshot: &Snapshot,
    (merchant, day): DayKey,
    facets: Facets,
    ids: &Ids,
) -> Result<DaySums, Fault> {
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
    /// Returns the tally of days, oldest first: the day, how many, and whether there are more.
    pub(crate) const fn of(days: Vec<(u64, u64, bool)>) -> Self {
        Self { days }
    }

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
                Some(sums) => made_of(&sums.unwrap_or_default(), facets),
                None => made_of(&recount(snapshot, key, facets, ids)?, facets),
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

/// Returns the middle wait of some buckets.
pub(crate) fn median(waits: &BTreeMap<u32, u64>) -> Option<u64> {
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
    use crate::record::sums::bucket_of;

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
