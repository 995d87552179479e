//! How a field is read, and what is said of one that is wrong.

use super::*;

pub(super) fn required<'a>(name: &str, value: &'a Option<String>) -> Result<&'a str, Problem> {
    value.as_deref().ok_or_else(|| format!("`{name}` is missing"))
}

pub(super) fn one_of<'a>(name: &str, word: &str, words: impl IntoIterator<Item = &'a str>) -> Problem {
    let words: Vec<_> = words.into_iter().map(|word| format!("{word:?}")).collect();
    format!("`{name}` {word:?} is none of {}", words.join(", "))
}

pub(super) fn point(word: &str) -> Result<String, Problem> {
    if POINTS.contains(&word) { Ok(word.to_owned()) } else { Err(one_of("point", word, POINTS)) }
}

pub(super) fn amount(name: &str, text: &str) -> Result<Money, Problem> {
    let money = Money::parse_ledger(text).map_err(|error| format!("`{name}` {text:?}: {error}"))?;
    if money.units == 0 { Err(format!("`{name}` must be more than nothing")) } else { Ok(money) }
}

pub(super) fn credited(name: &str, text: &str) -> Result<u64, Problem> {
    Money::parse_ledger(text).map(|money| money.units).map_err(|error| format!("`{name}` {text:?}: {error}"))
}

/// Reads `1h2m3s4ms`: parts in falling order of size, each at most once.
pub(super) fn duration(name: &str, text: &str) -> Result<u64, Problem> {
    let wrong =
        || format!("`{name}` {text:?} is no time; write it like \"5m\", \"1h30m\" or \"250ms\", never negative");
    let mut rest = text;
    let mut total = 0u64;
    let mut smallest = u64::MAX;
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let number: u64 = rest[..digits].parse().map_err(|_| wrong())?;
        rest = &rest[digits..];
        let letters = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_alphabetic()).len();
        let unit = match &rest[..letters] {
            "h" => 3_600_000,
            "m" => 60_000,
            "s" => 1_000,
            "ms" => 1,
            _ => return Err(wrong()),
        };
        if unit >= smallest {
            return Err(wrong());
        }
        smallest = unit;
        rest = &rest[letters..];
        total = number
            .checked_mul(unit)
            .and_then(|ms| total.checked_add(ms))
            .filter(|ms| *ms <= 70 * 86_400_000)
            .ok_or_else(wrong)?;
    }
    if text.is_empty() { Err(wrong()) } else { Ok(total) }
}

/// Reads `2.5%` as parts per million.
pub(super) fn read_percent(text: &str) -> Option<u32> {
    let digits = text.strip_suffix('%')?;
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let all_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !all_digits(whole) || !all_digits(fraction) || fraction.len() > 4 {
        return None;
    }
    let fraction: u32 = format!("{fraction:0<4}").parse().ok()?;
    whole.parse::<u32>().ok()?.checked_mul(10_000)?.checked_add(fraction).filter(|ppm| *ppm <= 1_000_000)
}
