//! Daily sums of a merchant's payments: the number of new payments by facet, the volume, and the times to completion.
//! Totals of lists, pages far from the first, and the overview read one row a day instead of every payment.
//!
//! Sums wrap around at 2^64. Additions and subtractions still cancel out, and the total supply of the ledger is far
//! smaller.

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
        sums::{DaySums, bucket_middle},
    },
    store::payments::{DayVolume, Volume, VolumeQuery},
};

const DAY_MS: u64 = 86_400_000;

/// Returns the day on which a payment was created.
pub(crate) fn day_of(id: u128) -> u64 {
    PaymentId::from_bits(id).created_at().millis() / DAY_MS
}

/// Returns the ids of a day.
pub(crate) fn ids_of(day: u64) -> Ids {
    let start = |day: u64| engine::time::Timestamp::from_millis(day.saturating_mul(DAY_MS));
    listed::ids_made(Some(start(day)), Some(start(day.saturating_add(1))))
}

/// Returns the sums of a day. The outer option is `None` if the row is damaged, the inner one if there is no row.
pub(crate) fn read(snapshot: &Snapshot, key: DayKey) -> Result<Option<Option<DaySums>>, Fault> {
    let table = snapshot.payment_days();
    table.skip_damaged(table.get(key).and_then(|found| {
        let named = || format!("{} of {}", key.1, MerchantId::from_bits(key.0));
        found
            .map(|bytes| record::sums_from_bytes(bytes.value()))
            .transpose()
            .map_err(|damage| Fault::inconsistent("payment_days", named(), damage))
    }))
}

/// Returns the number of new payments of some facets.
fn count_of(sums: &DaySums, facets: Facets) -> u64 {
    facets.iter().filter_map(|facet| sums.made.get(usize::from(facet))).sum()
}

/// Computes the sums of a day from its payments, of some facets and ids.
pub(crate) fn recount(
    snapshot: &Snapshot,
    (merchant, day): DayKey,
    facets: Facets,
    ids: &Ids,
) -> Result<DaySums, Fault> {
    let mut sums = DaySums::default();
    for listed in listed::newest_first(snapshot, merchant, facets, common(&ids_of(day), ids))? {
        sums.add(&listed?.1);
    }
    Ok(sums)
}

/// The number of a list's payments by day.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// The days with payments, oldest first: the day, its count, and whether counting stopped at the maximum.
    days: Vec<(u64, u64, bool)>,
}

impl Tally {
    /// Returns the tally of days, oldest first: the day, its count, and whether there are more.
    pub(crate) const fn of(days: Vec<(u64, u64, bool)>) -> Self {
        Self { days }
    }

    /// Returns the total.
    pub(crate) fn total(&self) -> u64 {
        self.days.iter().map(|(_, count, _)| count).sum()
    }

    /// Returns whether the first or the last day has more payments than were counted.
    pub(crate) fn is_lower_bound(&self) -> bool {
        self.days.iter().any(|(_, _, has_more)| *has_more)
    }

    /// Returns the largest id that may be among those after the `skipped` newest ones, and how many of the `skipped`
    /// are at or before it.
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

/// Counts the payments of some facets and ids by day: one row for each whole day. Of a partial day at most `edge_max`
/// payments are counted.
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
                Some(sums) => count_of(&sums.unwrap_or_default(), facets),
                None => count_of(&recount(snapshot, key, facets, ids)?, facets),
            };
        } else {
            for listed in listed::newest_first(snapshot, merchant, facets, common(&whole, ids))? {
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

/// Returns the volume by day.
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
            return Some(bucket_middle(*bucket));
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
    fn a_bucket_is_accurate_to_one_part_in_sixty_four() {
        let day = 86_400_000;
        for wait in (0..2_000).chain((0..50_000).map(|step| step * step)).chain([day, 365 * day, u64::MAX]) {
            let middle = bucket_middle(bucket_of(wait));
            assert!(middle.abs_diff(wait) <= wait / 64, "{wait} in the bucket of {middle}");
        }
        let buckets: Vec<u32> = (0..100_000).map(bucket_of).collect();
        assert!(buckets.windows(2).all(|pair| pair[1] == pair[0] || pair[1] == pair[0] + 1), "buckets have no gaps");
    }

    #[test]
    fn the_median_of_an_even_number_is_the_upper_one() {
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
