//! How times are written on the command line: `250ms`, `30s`, `10m`, `1h`; a bare number is seconds.

use std::time::Duration;

/// A year: longer than anything here runs.
const MOST_MS: u64 = 365 * 86_400_000;

/// Reads a time of at least a millisecond.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is no time: write it as 250ms, 30s, 10m or 1h");
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit_ms: u64 = match &text[digits.len()..] {
        "ms" => 1,
        "s" | "" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(wrong()),
    };
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    let millis = number.checked_mul(unit_ms).filter(|millis| (1..=MOST_MS).contains(millis)).ok_or_else(wrong)?;
    Ok(Duration::from_millis(millis))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_and_without_their_unit() {
        for (text, millis) in [("3s", 3_000), ("250ms", 250), ("2", 2_000), ("10m", 600_000), ("1h", 3_600_000)] {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for bad in ["", "0", "s", "-1s", "1.5s", "3 s", "99999999999999999999s", "8761h", "1d", "3ß"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
