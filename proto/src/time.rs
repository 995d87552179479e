//! Conversions between `google.protobuf.Timestamp` and milliseconds since the Unix epoch.

pub use prost_types::Timestamp;

/// The start of the year 10000, the first invalid millisecond.
const END_MS: u64 = 253_402_300_800_000;

/// Converts milliseconds since the Unix epoch.
#[must_use]
pub fn from_millis(millis: u64) -> Timestamp {
    let millis = millis.min(END_MS - 1);
    // Never fails: a second has fewer than 2^31 nanoseconds.
    let nanos = i32::try_from(millis % 1_000 * 1_000_000).unwrap_or_default();
    Timestamp { seconds: (millis / 1_000).cast_signed(), nanos }
}

/// Returns milliseconds since the Unix epoch, rounded down; `None` for times before 1970 or after 9999 and for invalid
/// nanoseconds.
#[must_use]
pub fn to_millis(time: Timestamp) -> Option<u64> {
    let seconds = u64::try_from(time.seconds).ok()?;
    let nanos = u64::try_from(time.nanos).ok().filter(|nanos| *nanos < 1_000_000_000)?;
    let millis = seconds.checked_mul(1_000)?.checked_add(nanos / 1_000_000)?;
    (millis < END_MS).then_some(millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_round_trip_to_the_millisecond() {
        for millis in [0, 1, 999, 1_000, 1_795_183_200_123, END_MS - 1] {
            assert_eq!(to_millis(from_millis(millis)), Some(millis));
        }
        assert_eq!(from_millis(u64::MAX), from_millis(END_MS - 1));
        let finer = Timestamp { seconds: 1, nanos: 1_999_999 };
        assert_eq!(to_millis(finer), Some(1_001));
    }

    #[test]
    fn times_outside_the_range_are_refused() {
        for (seconds, nanos) in [(-1, 0), (0, -1), (0, 1_000_000_000), (253_402_300_800, 0), (i64::MAX, 0)] {
            assert_eq!(to_millis(Timestamp { seconds, nanos }), None, "{seconds} {nanos}");
        }
    }
}
