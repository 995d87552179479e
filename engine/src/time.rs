//! Timestamps: milliseconds since the Unix epoch, UTC, with their public and ledger formats.

use std::{fmt, ops, time::Duration};

use serde::{Deserialize, Serialize};

/// An instant in milliseconds since the Unix epoch (UTC), never negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(u64);

impl Timestamp {
    /// 1970-01-01T00:00:00Z.
    pub const EPOCH: Self = Self(0);
    /// 9998-12-31T23:59:59.999Z: the end of the last full year that common date parsers support.
    pub const MAX: Self = Self(253_370_764_799_999);

    /// Returns the instant `millis` after the epoch, saturating at [`Timestamp::MAX`].
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        if millis > Self::MAX.0 { Self::MAX } else { Self(millis) }
    }

    /// Returns the instant `seconds` after the epoch.
    #[must_use]
    pub const fn from_seconds(seconds: u64) -> Self {
        Self::from_millis(seconds.saturating_mul(1_000))
    }

    /// Returns milliseconds since the epoch.
    #[must_use]
    pub const fn millis(self) -> u64 {
        self.0
    }

    /// Returns whole seconds since the epoch, rounded down.
    #[must_use]
    pub const fn seconds(self) -> u64 {
        self.0 / 1_000
    }

    /// Returns the duration since `earlier`; zero if this is not later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }

    /// Returns this instant minus `by`, saturating at the epoch.
    #[must_use]
    pub fn minus(self, by: Duration) -> Self {
        Self(self.0.saturating_sub(u64::try_from(by.as_millis()).unwrap_or(u64::MAX)))
    }

    /// Parses the public format: ISO 8601 with a zone, such as `2026-11-20T14:00:00.000Z`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let instant: jiff::Timestamp = text.parse().ok()?;
        u64::try_from(instant.as_millisecond()).ok().map(Self::from_millis)
    }

    /// Parses the ledger format, `2026-11-20T14:05:00`: exactly 19 characters, no zone, whole seconds.
    #[must_use]
    pub fn parse_ledger(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        let shaped = bytes.len() == 19
            && bytes.iter().enumerate().all(|(at, byte)| match at {
                4 | 7 => *byte == b'-',
                10 => *byte == b'T',
                13 | 16 => *byte == b':',
                _ => byte.is_ascii_digit(),
            });
        if !shaped {
            return None;
        }
        let civil: jiff::civil::DateTime = text.parse().ok()?;
        // jiff maps a leap second to :59, but block times have no leap seconds.
        if &bytes[17..19] == b"60" {
            return None;
        }
        let instant = civil.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp();
        u64::try_from(instant.as_millisecond()).ok().map(Self::from_millis)
    }

    /// Formats as on the ledger; fractions of a second are truncated.
    #[must_use]
    pub fn to_ledger(self) -> String {
        self.civil().strftime("%Y-%m-%dT%H:%M:%S").to_string()
    }

    fn civil(self) -> jiff::Timestamp {
        let millis = i64::try_from(self.0).expect("a timestamp is at most the year 9998");
        jiff::Timestamp::from_millisecond(millis).expect("a timestamp is at most the year 9998")
    }
}

/// Formats as ISO 8601 UTC with milliseconds and `Z`.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}", self.civil())
    }
}

impl ops::Add<Duration> for Timestamp {
    type Output = Self;
    fn add(self, by: Duration) -> Self {
        Self::from_millis(self.0.saturating_add(u64::try_from(by.as_millis()).unwrap_or(u64::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_public_format_has_milliseconds_and_a_zone() {
        let instant = Timestamp::from_millis(1_763_647_200_007);
        assert_eq!(instant.to_string(), "2025-11-20T14:00:00.007Z");
        assert_eq!(Timestamp::parse("2025-11-20T14:00:00.007Z"), Some(instant));
        assert_eq!(Timestamp::parse("2025-11-20T15:00:00.007+01:00"), Some(instant));
        assert_eq!(Timestamp::parse("2025-11-20T14:00:00"), None);
        assert_eq!(Timestamp::EPOCH.to_string(), "1970-01-01T00:00:00.000Z");
        assert_eq!(Timestamp::MAX.to_string(), "9998-12-31T23:59:59.999Z");
    }

    #[test]
    fn the_ledger_format_has_no_milliseconds_and_no_zone() {
        let instant = Timestamp::from_seconds(1_763_647_200);
        assert_eq!(instant.to_ledger(), "2025-11-20T14:00:00");
        assert_eq!(Timestamp::parse_ledger("2025-11-20T14:00:00"), Some(instant));
        for bad in [
            "2025-11-20T14:00:00Z",
            "2025-11-20T14:00:00.5",
            "2025-11-20 14:00:00",
            "2025-13-20T14:00:00",
            "2025-11-20T14:00:60",
            "2025-02-30T14:00:00",
            "",
        ] {
            assert_eq!(Timestamp::parse_ledger(bad), None, "{bad:?}");
        }
    }
}
