//! Rates as settings write them: a count per second, minute, hour or day, with a burst.

use std::{fmt, num::NonZeroU32, str::FromStr, time::Duration};

use governor::Quota;

/// A rate with a burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    count: NonZeroU32,
    unit: Unit,
    burst: NonZeroU32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Second,
    Minute,
    Hour,
    Day,
}

impl Unit {
    const ALL: [(&'static str, Self); 4] =
        [("s", Self::Second), ("min", Self::Minute), ("h", Self::Hour), ("day", Self::Day)];

    const fn seconds(self) -> u64 {
        match self {
            Self::Second => 1,
            Self::Minute => 60,
            Self::Hour => 3_600,
            Self::Day => 86_400,
        }
    }
}

/// The error of a text that is not a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a rate is written as `25/s burst 50`, `2/min` or `20/day`")]
pub struct InvalidRate;

/// Maximum count and burst.
const MAX: u32 = 1_000_000;

impl FromStr for Rate {
    type Err = InvalidRate;

    /// Parses `25/s burst 50`; without a burst, the burst equals the count.
    fn from_str(text: &str) -> Result<Self, InvalidRate> {
        let (rate, burst) = match text.split_once(" burst ") {
            Some((rate, burst)) => (rate, Some(burst)),
            None => (text, None),
        };
        let (count, unit) = rate.split_once('/').ok_or(InvalidRate)?;
        let (_, unit) = Unit::ALL.into_iter().find(|(word, _)| *word == unit).ok_or(InvalidRate)?;
        let count = number(count)?;
        let burst = burst.map_or(Ok(count), number)?;
        Ok(Self { count, unit, burst })
    }
}

fn number(text: &str) -> Result<NonZeroU32, InvalidRate> {
    let number: u32 = text.parse().map_err(|_| InvalidRate)?;
    NonZeroU32::new(number).filter(|number| number.get() <= MAX && !text.starts_with('+')).ok_or(InvalidRate)
}

impl Rate {
    /// Returns the quota for the limiter.
    pub(crate) fn quota(self) -> Quota {
        let between = Duration::from_secs(self.unit.seconds()) / self.count.get();
        // The period is never zero: a million per second are one microsecond apart.
        Quota::with_period(between).unwrap_or(Quota::per_second(self.count)).allow_burst(self.burst)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = Unit::ALL.into_iter().find(|(_, unit)| *unit == self.unit).map_or("", |(word, _)| word);
        write!(f, "{}/{unit}", self.count)?;
        if self.burst == self.count { Ok(()) } else { write!(f, " burst {}", self.burst) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_parsed_and_formatted() {
        for text in ["25/s burst 50", "2/min", "20/day", "60/min burst 30", "1/h burst 1000000"] {
            assert_eq!(text.parse::<Rate>().expect(text).to_string(), text);
        }
        for bad in
            ["", "25", "25/", "/s", "0/s", "1/s burst 0", "1/week", "-1/s", "+1/s", "1/s burst", "1.5/s", "1000001/s"]
        {
            assert_eq!(bad.parse::<Rate>(), Err(InvalidRate), "{bad}");
        }
    }
}
