//! The stored form of a day's sums.

use std::collections::BTreeMap;

use engine::{money::Currency, payment::State};
use prost::Message;

use crate::record::{
    summary::{FACETS, Summary, facet},
    wire::{Damage, seal, unseal},
};

const VERSION: u8 = 1;

#[derive(Clone, PartialEq, Message)]
struct SumsRecord {
    /// By facet; trailing zeros are omitted.
    #[prost(uint64, repeated, tag = "1")]
    made: Vec<u64>,
    #[prost(uint64, tag = "2")]
    opened: u64,
    #[prost(uint64, tag = "3")]
    ended: u64,
    #[prost(uint64, tag = "4")]
    completed: u64,
    #[prost(uint64, tag = "5")]
    hive_units: u64,
    #[prost(uint64, tag = "6")]
    hbd_units: u64,
    #[prost(uint64, tag = "7")]
    usd_cents: u64,
    #[prost(uint32, repeated, tag = "8")]
    wait_buckets: Vec<u32>,
    #[prost(uint64, repeated, tag = "9")]
    wait_counts: Vec<u64>,
}

/// Returns the stored form of a day's sums.
pub(crate) fn sums_to_bytes(sums: &DaySums) -> Vec<u8> {
    let last = sums.made.iter().rposition(|count| *count != 0).map_or(0, |last| last + 1);
    let record = SumsRecord {
        made: sums.made[..last].to_vec(),
        opened: sums.opened,
        ended: sums.ended,
        completed: sums.completed,
        hive_units: sums.hive_units,
        hbd_units: sums.hbd_units,
        usd_cents: sums.usd_cents,
        wait_buckets: sums.waits.keys().copied().collect(),
        wait_counts: sums.waits.values().copied().collect(),
    };
    seal(VERSION, &record)
}

/// Decodes a day's sums.
pub(crate) fn sums_from_bytes(bytes: &[u8]) -> Result<DaySums, Damage> {
    let record: SumsRecord = unseal(VERSION, bytes)?;
    let mut made = [0; FACETS];
    let places = made.get_mut(..record.made.len());
    let wrong = |value: usize| Damage::Value { field: "made", value: format!("{value} facets") };
    places.ok_or_else(|| wrong(record.made.len()))?.copy_from_slice(&record.made);
    Ok(DaySums {
        made,
        opened: record.opened,
        ended: record.ended,
        completed: record.completed,
        hive_units: record.hive_units,
        hbd_units: record.hbd_units,
        usd_cents: record.usd_cents,
        waits: record.wait_buckets.into_iter().zip(record.wait_counts).collect(),
    })
}

/// The sums of one day, or the change of them by a write.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct DaySums {
    /// Payments created, by facet.
    pub(crate) made: [u64; FACETS],
    /// Sales created: payments that are not invoices. The fields below count sales only.
    pub(crate) opened: u64,
    /// Of these, payments in a final state.
    pub(crate) ended: u64,
    /// Of these, completed payments.
    pub(crate) completed: u64,
    /// Amount completed in HIVE, smallest units.
    pub(crate) hive_units: u64,
    /// Amount completed in HBD, smallest units.
    pub(crate) hbd_units: u64,
    /// Amount completed, US cents.
    pub(crate) usd_cents: u64,
    /// Completed payments by bucket of the time from creation to completion.
    pub(crate) waits: BTreeMap<u32, u64>,
}

impl DaySums {
    /// Adds a payment.
    pub(crate) fn add(&mut self, payment: &Summary) {
        self.count(payment, 1);
    }

    /// Subtracts a payment that was added before.
    pub(crate) fn subtract(&mut self, payment: &Summary) {
        self.count(payment, 1_u64.wrapping_neg());
    }

    fn count(&mut self, payment: &Summary, times: u64) {
        let plus = |sum: &mut u64, value: u64| *sum = sum.wrapping_add(value.wrapping_mul(times));
        plus(&mut self.made[usize::from(facet(payment))], 1);
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

    /// Adds a change.
    pub(crate) fn merge(&mut self, change: &Self) {
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

    /// Returns whether no count is negative.
    pub(crate) fn is_valid(&self) -> bool {
        const MAX_COUNT: u64 = u64::MAX / 2;
        self.made.iter().chain(self.waits.values()).all(|count| *count < MAX_COUNT)
    }
}

/// Times below this many milliseconds have a bucket each; above, each power of two has half as many buckets.
pub(crate) const EXACT_MS: u64 = 64;

/// Returns the bucket of a time in milliseconds.
pub(crate) fn bucket_of(wait: u64) -> u32 {
    if wait < EXACT_MS {
        return wait.try_into().expect("it is small");
    }
    let doublings = wait.ilog2() - EXACT_MS.ilog2() + 1;
    // The six highest bits, of which the first is always 1.
    let within = u32::try_from(wait >> doublings).expect("six bits are left");
    doublings * 32 + within
}

/// Returns the middle of a bucket, milliseconds, within one part in 64 of every time in the bucket.
pub(crate) fn bucket_middle(bucket: u32) -> u64 {
    if u64::from(bucket) < EXACT_MS {
        return u64::from(bucket);
    }
    let doublings = bucket / 32 - 1;
    let within = u64::from(bucket - doublings * 32);
    // A damaged row may hold a bucket that `bucket_of` never returns.
    within.checked_shl(doublings).unwrap_or(u64::MAX).saturating_add(1_u64.checked_shl(doublings).unwrap_or(0) / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_round_trip_and_have_these_bytes() {
        let mut sums = DaySums { opened: 3, ended: 2, completed: 1, ..DaySums::default() };
        (sums.hive_units, sums.hbd_units, sums.usd_cents) = (4, 500, 6);
        (sums.made[1], sums.made[8]) = (2, 300);
        sums.waits = [(7, 1), (200, 9)].into();
        let bytes = sums_to_bytes(&sums);
        assert_eq!(sums_from_bytes(&bytes), Ok(sums));
        assert_eq!(sums_from_bytes(&sums_to_bytes(&DaySums::default())), Ok(DaySums::default()));
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, "010a0a0002000000000000ac02100318022001280430f4033806420307c8014a020109");
    }
}
