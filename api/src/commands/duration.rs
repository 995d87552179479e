//! Durations on the command line: `250ms`, `30s`, `10m`, `1h`; a number without a unit is seconds.

use std::time::Duration;

/// The maximum, a year.
const MAX_MS: u64 = 365 * 86_400_000;

/// Parses a duration of at least a millisecond.
///
/// # Errors
/// The message for the command line.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    let invalid = || format!("`{text}` is not a duration: use a form such as 250ms, 30s, 10m or 1h");
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit_ms: u64 = match &text[digits.len()..] {
        "ms" => 1,
        "s" | "" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(invalid()),
    };
    let number: u64 = digits.parse().map_err(|_| invalid())?;
    let millis = number.checked_mul(unit_ms).filter(|millis| (1..=MAX_MS).contains(millis)).ok_or_else(invalid)?;
    Ok(Duration::from_millis(millis))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed_with_and_without_a_unit() {
        for (text, millis) in [("3s", 3_000), ("250ms", 250), ("2", 2_000), ("10m", 600_000), ("1h", 3_600_000)] {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for bad in ["", "0", "s", "-1s", "1.5s", "3 s", "99999999999999999999s", "8761h", "1d", "3ß"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
