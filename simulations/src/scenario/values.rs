//! Reads and writes the values of fields: keywords, amounts, durations, shares.

use std::fmt::Write as _;

use engine::{money::Money, payment::ClaimFinality};

use super::Problem;

/// The points of the code that a scenario can name.
pub const POINTS: [&str; 13] = [
    "payment: applied, not committed",
    "payment: committed, effects not run",
    "gateway: created, not adopted",
    "scanner: credited, cursor not moved",
    "settlement: claimed, not broadcast",
    "settlement: broadcast, not recorded",
    "webhook: signed, not sent",
    "webhook: sent, not recorded",
    "reconciliation: checked, not stored",
    "settlement: claim shared, not broadcast",
    "webhook: claimed, not sent",
    "duty: taken, not begun",
    "duty: lease renewed, not counted",
];

/// When an agent's payment completes, with the keywords of scenario files.
pub(super) const FINALITIES: [(ClaimFinality, &str); 3] = [
    (ClaimFinality::Accepted, "accepted"),
    (ClaimFinality::InBlock, "in_block"),
    (ClaimFinality::Irreversible, "irreversible"),
];

/// Returns the value of a keyword.
pub(super) fn find_keyword<T: Copy>(name: &str, word: &str, table: &[(T, &str)]) -> Result<T, Problem> {
    let found = table.iter().find(|(_, known)| *known == word);
    found.map(|(value, _)| *value).ok_or_else(|| one_of(name, word, table.iter().map(|(_, word)| *word)))
}

/// Returns the keyword of a value; empty for one without a keyword.
pub(super) fn keyword_of<T: PartialEq>(value: &T, table: &[(T, &'static str)]) -> &'static str {
    table.iter().find(|(known, _)| known == value).map_or("", |(_, word)| word)
}

/// Returns the text of a field that must be there.
pub(super) fn required<'a>(name: &str, value: &'a Option<String>) -> Result<&'a str, Problem> {
    value.as_deref().ok_or_else(|| format!("`{name}` is missing"))
}

/// Returns the problem of a word that is none of the known ones.
pub(super) fn one_of<'a>(name: &str, word: &str, words: impl IntoIterator<Item = &'a str>) -> Problem {
    let words: Vec<_> = words.into_iter().map(|word| format!("{word:?}")).collect();
    format!("`{name}` {word:?} is none of {}", words.join(", "))
}

/// Reads a named point of the code.
pub(super) fn point(word: &str) -> Result<String, Problem> {
    if POINTS.contains(&word) { Ok(word.to_owned()) } else { Err(one_of("point", word, POINTS)) }
}

/// Reads an amount that is not zero.
pub(super) fn amount(name: &str, text: &str) -> Result<Money, Problem> {
    let money = Money::parse_ledger(text).map_err(|error| format!("`{name}` {text:?}: {error}"))?;
    if money.units == 0 { Err(format!("`{name}` must be greater than 0")) } else { Ok(money) }
}

/// Reads a credited amount.
pub(super) fn credited(name: &str, text: &str) -> Result<Money, Problem> {
    Money::parse_ledger(text).map_err(|error| format!("`{name}` {text:?}: {error}"))
}

/// Reads a duration, milliseconds: `1h2m3s4ms`, units in descending order, each at most once; at most 70 days.
pub(super) fn duration(name: &str, text: &str) -> Result<u64, Problem> {
    let wrong = || format!("`{name}` {text:?} is no duration; use the form \"5m\", \"1h30m\" or \"250ms\"");
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

/// Writes a duration as [`duration`] reads it.
pub(super) fn show(ms: u64) -> String {
    let mut text = String::new();
    let mut left = ms;
    for (unit, size) in [("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)] {
        if left >= size {
            let _ = write!(text, "{}{unit}", left / size);
            left %= size;
        }
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}
