//! A calendar month in UTC.

use std::fmt;

use crate::time::Timestamp;

/// A calendar month in UTC, from January 1970 to December 9998.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Month(u32);

/// January 1970, in months since January of the year 0.
const FIRST: u32 = 1_970 * 12;
/// The last month whose end is a valid [`Timestamp`].
const LAST: u32 = 9_998 * 12 + 10;

impl Month {
    /// Returns the month `month` (1 to 12) of a year; `None` outside 1970 to 9998.
    #[must_use]
    pub const fn new(year: u32, month: u32) -> Option<Self> {
        if year > 9_998 || month == 0 || month > 12 {
            return None;
        }
        Self::from_number(year * 12 + month - 1)
    }

    /// Decodes the number that [`Month::number`] returned.
    #[must_use]
    pub const fn from_number(number: u32) -> Option<Self> {
        if number < FIRST || number > LAST { None } else { Some(Self(number)) }
    }

    /// Returns the number of months since January of the year 0.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }

    /// Returns the month of an instant.
    ///
    /// # Panics
    /// Never: a timestamp is between 1970 and 9998.
    #[must_use]
    pub fn of(at: Timestamp) -> Self {
        let millis = i64::try_from(at.millis()).expect("a timestamp is at most the year 9998");
        let instant = jiff::Timestamp::from_millisecond(millis).expect("a timestamp is at most the year 9998");
        let date = instant.to_zoned(jiff::tz::TimeZone::UTC).date();
        let year = u32::from(date.year().unsigned_abs());
        Self((year * 12 + u32::from(date.month().unsigned_abs()) - 1).clamp(FIRST, LAST))
    }

    /// Returns the year.
    #[must_use]
    pub const fn year(self) -> u32 {
        self.0 / 12
    }

    /// Returns the month of the year, 1 to 12.
    #[must_use]
    pub const fn month(self) -> u32 {
        self.0 % 12 + 1
    }

    /// Returns the first instant of the month.
    #[must_use]
    pub fn start(self) -> Timestamp {
        Timestamp::parse(&format!("{self}-01T00:00:00Z")).unwrap_or(Timestamp::MAX)
    }

    /// Returns the first instant after the month.
    #[must_use]
    pub fn end(self) -> Timestamp {
        Self(self.0 + 1).start()
    }

    /// Returns the next month; saturates at the last one.
    #[must_use]
    pub const fn next(self) -> Self {
        if self.0 >= LAST { self } else { Self(self.0 + 1) }
    }
}

/// Formats as `2026-11`.
impl fmt::Display for Month {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}", self.year(), self.month())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_month_begins_and_ends_at_midnight_utc() {
        let month = Month::of(Timestamp::parse("2026-12-31T23:59:59.999Z").unwrap());
        assert_eq!((month.year(), month.month(), month.to_string().as_str()), (2_026, 12, "2026-12"));
        assert_eq!(month.start().to_string(), "2026-12-01T00:00:00.000Z");
        assert_eq!(month.end().to_string(), "2027-01-01T00:00:00.000Z");
        assert_eq!(Month::of(month.end()), month.next());
        assert_eq!(Month::new(2_026, 12), Some(month));
        for (year, number) in [(2_026, 0), (2_026, 13), (1_969, 12), (9_999, 1), (9_998, 12), (u32::MAX, 1)] {
            assert_eq!(Month::new(year, number), None, "{year}-{number}");
        }
        assert_eq!(Month::of(Timestamp::MAX).next(), Month::of(Timestamp::MAX));
        assert_eq!(Month::of(Timestamp::EPOCH).start(), Timestamp::EPOCH);
    }

    proptest! {
        #[test]
        fn every_instant_lies_within_its_month(millis in 0..Timestamp::MAX.millis() - 40 * 86_400_000) {
            let at = Timestamp::from_millis(millis);
            let month = Month::of(at);
            prop_assert!(month.start() <= at && at < month.end());
            prop_assert_eq!(Month::from_number(month.number()), Some(month));
            prop_assert_eq!(month.next().start(), month.end());
        }
    }
}
