//! Hive account names, validated as hived does.

use std::{fmt, str::FromStr};

/// The reason why a string is not an account name (hived: `authority.cpp`, `check_account_name`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Fewer than 3 or more than 16 bytes.
    #[error("must have 3 to 16 characters")]
    Length,
    /// A dot-separated segment is invalid.
    #[error(
        "must be dot-separated words of a-z, 0-9 and -, each at least 3 long, starting with a letter and not ending with -"
    )]
    Segment,
}

/// Maximum length in bytes.
const MAX_LEN: usize = 16;

/// A well-formed account name; the account need not exist. Stored inline and padded with zeros, so that names sort like
/// their strings.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccountName([u8; MAX_LEN]);

impl AccountName {
    /// Parses a name as hived does.
    ///
    /// # Errors
    /// [`NameError`] if the length or a segment is invalid.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        if !(3..=MAX_LEN).contains(&text.len()) {
            return Err(NameError::Length);
        }
        let segment_ok = |segment: &str| {
            let bytes = segment.as_bytes();
            bytes.len() >= 3
                && bytes[0].is_ascii_lowercase()
                && bytes[bytes.len() - 1] != b'-'
                && bytes.iter().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'-')
        };
        if !text.split('.').all(segment_ok) {
            return Err(NameError::Segment);
        }
        let mut name = [0; MAX_LEN];
        name[..text.len()].copy_from_slice(text.as_bytes());
        Ok(Self(name))
    }

    /// Returns the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let len = self.0.iter().position(|byte| *byte == 0).unwrap_or(MAX_LEN);
        std::str::from_utf8(&self.0[..len]).expect("a name is ASCII")
    }

    /// Returns whether a merchant would lose money sent here: the account burns it, needs no signature, or belongs to
    /// the treasury.
    #[must_use]
    pub fn cannot_receive(&self) -> bool {
        matches!(self.as_str(), "null" | "temp" | "miners" | "hive.fund" | "steem.dao")
    }
}

impl FromStr for AccountName {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Self, NameError> {
        Self::parse(text)
    }
}

impl fmt::Display for AccountName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for AccountName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_sort_like_their_strings() {
        let texts =
            ["abc", "abc-d", "abc.def", "abc0", "abcd", "abd", "blue.mugs", "shop-of-all-mugs", "shop-of-all-mugz"];
        let names = texts.map(|text| AccountName::parse(text).unwrap());
        assert_eq!(names.map(|name| name.to_string()), texts);
        assert!(texts.is_sorted() && names.is_sorted());
        assert_eq!(AccountName::parse("shop-of-all-mugss"), Err(NameError::Length));
    }
}
