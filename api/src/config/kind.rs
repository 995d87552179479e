//! The types of settings: validation and description of their values.

use std::{fmt, net::SocketAddr};

use actors::addresses::IpNet;
use engine::{account::AccountName, hive::ChainId, ids::MerchantId, money::FeePercent};

use crate::facade::limits::Rate;

/// The type of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// One of several values.
    Enum(&'static [&'static str]),
    /// A whole number within a range.
    Integer(u64, u64),
    /// `true` or `false`.
    Flag,
    /// A percentage with up to 4 decimals.
    Percent,
    /// A ledger account, or empty.
    Account,
    /// The id of a merchant, or empty.
    Merchant,
    /// A chain id, 64 hex characters.
    ChainId,
    /// A listening address, `ip:port`.
    Listen,
    /// A listening address, or empty.
    OptionalListen,
    /// An http or https URL, or empty.
    OptionalUrl,
    /// One or more http or https URLs.
    Urls,
    /// Different http or https URLs, or empty. One may be written as a text.
    OptionalUrls,
    /// Networks such as `10.1.0.0/16`, or empty.
    Networks,
    /// Origins such as `https://admin.example`, or empty.
    Origins,
    /// A path, or empty.
    Path,
    /// The prefix of HTTP header names.
    HeaderPrefix,
    /// A rate limit such as `25/s burst 50`, or empty.
    Rate,
    /// 1 to 200 characters on one line.
    Text,
    /// The URL of a PostgreSQL database, or empty. Never printed, because it may contain a password.
    Database,
    /// Any text without control characters, or empty. Never printed.
    Secret,
    /// 32 to 512 visible ASCII characters, or empty. Never printed.
    Token,
}

impl Kind {
    /// Validates a value of this type.
    ///
    /// # Errors
    /// The requirement, as the end of a sentence that starts with the name of the setting.
    pub fn check(self, text: &str) -> Result<(), String> {
        let is = |valid: bool| if valid { Ok(()) } else { Err(format!("must be {self}")) };
        match self {
            Self::Enum(words) => is(words.contains(&text)),
            Self::Integer(low, high) => {
                is(is_digits(text) && text.parse().is_ok_and(|n: u64| (low..=high).contains(&n)))
            }
            Self::Flag => is(matches!(text, "true" | "false")),
            Self::Percent => is(FeePercent::parse(text).is_some()),
            Self::Account => is(text.is_empty() || AccountName::parse(text).is_ok()),
            Self::Merchant => is(text.is_empty() || text.parse::<MerchantId>().is_ok()),
            Self::ChainId => is(ChainId::parse(text).is_some()),
            Self::Listen => is(text.parse::<SocketAddr>().is_ok()),
            Self::OptionalListen => is(text.is_empty() || text.parse::<SocketAddr>().is_ok()),
            Self::OptionalUrl => is(text.is_empty() || is_url(text)),
            Self::Database => is(text.is_empty() || text.parse::<storage::Address>().is_ok()),
            Self::OptionalUrls => is(text.is_empty() || are_different_urls(text)),
            Self::Urls => is(!text.is_empty() && text.split(',').all(is_url)),
            Self::Networks => is(text.is_empty() || text.split(',').all(|part| part.trim().parse::<IpNet>().is_ok())),
            Self::Origins => is(text.is_empty() || text.split(',').all(is_origin)),
            Self::Text => {
                is(!text.trim().is_empty() && text.chars().count() <= 200 && !text.chars().any(char::is_control))
            }
            Self::Token => is(text.is_empty()
                || ((32..=512).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic()))),
            Self::Path | Self::Secret => is(!text.chars().any(char::is_control)),
            Self::Rate => is(text.is_empty() || text.parse::<Rate>().is_ok()),
            Self::HeaderPrefix => is((1..=40).contains(&text.len())
                && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
                && text.starts_with(|c: char| c.is_ascii_alphabetic())),
        }
    }
}

/// Formats the requirement for a value.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Enum(words) => write!(f, "{}", words.join(" or ")),
            Self::Integer(low, high) => write!(f, "a whole number from {low} to {high}"),
            Self::Flag => f.write_str("true or false"),
            Self::Percent => f.write_str("a number from 0 to 100 with up to 4 decimals"),
            Self::Account => f.write_str("a ledger account or empty"),
            Self::Merchant => f.write_str("a merchant's id or empty"),
            Self::ChainId => f.write_str("64 hex characters"),
            Self::Listen => f.write_str("an IP address and port such as 127.0.0.1:8080"),
            Self::OptionalListen => f.write_str("an IP address and port such as 127.0.0.1:8081, or empty"),
            Self::OptionalUrl => f.write_str("an http or https URL, or empty"),
            Self::Database => f.write_str("a URL such as postgres://till@db.example/till, or empty"),
            Self::Urls => f.write_str("one or more http or https URLs"),
            Self::OptionalUrls => f.write_str("one or more different http or https URLs, or empty"),
            Self::Origins => f.write_str("origins such as https://admin.example, or empty"),
            Self::Networks => f.write_str("networks such as 10.1.0.0/16, or empty"),
            Self::Path => f.write_str("a path or empty"),
            Self::Rate => f.write_str("a rate such as 25/s burst 50, 2/min or 20/day, or empty"),
            Self::HeaderPrefix => f.write_str("1 to 40 letters, digits and hyphens, a letter first"),
            Self::Text => f.write_str("1 to 200 characters on one line"),
            Self::Token => f.write_str("32 to 512 visible ASCII characters without spaces, or empty"),
            Self::Secret => f.write_str("a text without control characters, or empty"),
        }
    }
}

impl Kind {
    /// Returns the name and the range of the type for the documentation.
    pub(super) fn documentation(self) -> (&'static str, String) {
        match self {
            Self::Enum(words) => ("enum", words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")),
            Self::Integer(low, high) => ("integer", format!("{low} … {high}")),
            Self::Flag => ("boolean", "`true`, `false`".to_owned()),
            Self::Percent => ("decimal", "0 … 100, 4 decimals".to_owned()),
            Self::Account => ("text", "a ledger account or empty".to_owned()),
            Self::Merchant => ("text", "`mer_` and 26 characters, or empty".to_owned()),
            Self::ChainId => ("text", "64 hex characters".to_owned()),
            Self::Listen => ("text", "`ip:port`".to_owned()),
            Self::OptionalListen => ("text", "`ip:port` or empty".to_owned()),
            Self::OptionalUrl => ("text", "http(s) URL or empty".to_owned()),
            Self::Database => ("text", "`postgres://` URL or empty, secret, never shown".to_owned()),
            Self::OptionalUrls => {
                ("text or list of texts", "http(s) URLs, all different, or empty; comma-separated in a text".to_owned())
            }
            Self::Urls => ("list of texts", "http(s) URLs; comma-separated in an environment variable".to_owned()),
            Self::Networks => ("list of texts", "networks such as `10.1.0.0/16`".to_owned()),
            Self::Origins => ("list of texts", "origins such as `https://admin.example`".to_owned()),
            Self::Rate => ("rate", "`n/s`, `n/min`, `n/h`, `n/day`, and `burst m`, or empty".to_owned()),
            Self::Path => ("text", "a path or empty".to_owned()),
            Self::HeaderPrefix => ("text", "1 to 40 letters, digits, `-`".to_owned()),
            Self::Text => ("text", "1 to 200 characters".to_owned()),
            Self::Token => ("text", "32 to 512 characters, secret, never shown".to_owned()),
            Self::Secret => ("text", "secret, never shown".to_owned()),
        }
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn is_url(text: &str) -> bool {
    url::Url::parse(text.trim()).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
}

/// Returns whether a text is a list of URLs without duplicates.
fn are_different_urls(text: &str) -> bool {
    let urls = text.split(',').map(|part| url::Url::parse(part.trim()).ok().filter(|_| is_url(part)));
    let mut seen = std::collections::BTreeSet::new();
    urls.into_iter().all(|url| url.is_some_and(|url| seen.insert(url)))
}

/// Returns whether a text is an origin as sent by browsers: without a path, and without the default port of its scheme.
fn is_origin(text: &str) -> bool {
    let text = text.trim();
    is_url(text) && url::Url::parse(text).is_ok_and(|url| url.origin().ascii_serialization() == text)
}
