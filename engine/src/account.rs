//! Account names of the ledger, by hived's own rule.

use std::{fmt, str::FromStr};

/// Why a text is not an account name (hived: `authority.cpp`, `check_account_name`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Fewer than 3 or more than 16 bytes.
    #[error("must have 3 to 16 characters")]
    Length,
    /// A segment between dots breaks the rule.
    #[error(
        "must be dot-separated words of a-z, 0-9 and -, each at least 3 long, starting with a letter and not ending with -"
    )]
    Segment,
}

/// A well-formed account name; whether the account exists only the ledger knows.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccountName(Box<str>);

impl AccountName {
    /// Parses a name by hived's rule.
    ///
    /// # Errors
    /// [`NameError`] says which half of the rule is broken.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        if !(3..=16).contains(&text.len()) {
            return Err(NameError::Length);
        }
        let segment_ok = |segment: &str| {
            let bytes = segment.as_bytes();
            bytes.len() >= 3
                && bytes[0].is_ascii_lowercase()
                && bytes[bytes.len() - 1] != b'-'
                && bytes.iter().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'-')
        };
        if text.split('.').all(segment_ok) { Ok(Self(text.into())) } else { Err(NameError::Segment) }
    }

    /// Returns the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Says whether money sent here is lost to a shop: burnt, anybody's, or turned into the treasury's HBD.
    #[must_use]
    pub fn cannot_receive(&self) -> bool {
        matches!(&*self.0, "null" | "temp" | "miners" | "hive.fund" | "steem.dao")
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
        f.write_str(&self.0)
    }
}

impl fmt::Debug for AccountName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
