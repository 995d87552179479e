//! The bytes of a day's sums.

use prost::Message;

use super::{Damage, seal, unseal};
use crate::embedded::read::{days::DaySums, listed::FACETS};

const VERSION: u8 = 1;

#[derive(Clone, PartialEq, Message)]
struct SumsRecord {
    /// By facet; none follow the last that is not 0.
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

/// Reads a day's sums.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_read_back_and_have_these_bytes() {
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
