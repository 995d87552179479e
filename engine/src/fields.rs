//! Validation of request fields.

use std::{collections::BTreeMap, fmt};

use url::{Host, Url};

use crate::text;

/// An invalid field of a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} {message}")]
pub struct Violation {
    /// The name of the field in the request, such as `amount` or `metadata.orderId`.
    pub field: String,
    /// The rule, worded as the end of a sentence that starts with the field name.
    pub message: String,
}

impl Violation {
    /// Returns a violation of `field`.
    #[must_use]
    pub fn new(field: impl Into<String>, message: impl fmt::Display) -> Self {
        Self { field: field.into(), message: message.to_string() }
    }
}

/// Maximum characters of a description.
pub const DESCRIPTION_MAX_CHARS: usize = 255;
/// Maximum characters of a business name.
pub const NAME_MAX_CHARS: usize = 100;
/// Maximum characters of a URL.
pub const URL_MAX_CHARS: usize = 2_048;
/// Maximum entries of a metadata object.
pub const METADATA_MAX_KEYS: usize = 50;
/// Maximum characters of a metadata key.
pub const METADATA_KEY_MAX_CHARS: usize = 40;
/// Maximum characters of a metadata string.
pub const METADATA_VALUE_MAX_CHARS: usize = 500;
/// Maximum strings in a metadata array.
pub const METADATA_ARRAY_MAX_ITEMS: usize = 20;
/// Maximum bytes of all metadata keys and strings together.
pub const METADATA_MAX_BYTES: usize = 8_192;
/// Range of session lifetimes, seconds.
pub const LIFETIME_SECONDS: std::ops::RangeInclusive<u64> = 60..=86_400;

/// A metadata value: a string or a list of strings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MetadataValue {
    /// A string.
    Text(String),
    /// A list of strings.
    List(Vec<String>),
}

impl MetadataValue {
    /// Returns the strings of the value.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        match self {
            Self::Text(text) => std::slice::from_ref(text).iter(),
            Self::List(list) => list.iter(),
        }
        .map(String::as_str)
    }
}

/// Metadata that a merchant attached to a payment; returned unchanged.
pub type Metadata = BTreeMap<String, MetadataValue>;

/// Validates a display string of `1..=max_chars` characters and returns it normalized.
///
/// # Errors
/// A [`Violation`] of `field`; see [`text::visible`].
pub fn text(field: &str, value: &str, max_chars: usize) -> Result<String, Violation> {
    if value.trim().is_empty() {
        return Err(Violation::new(field, "must not be empty"));
    }
    let long = |chars| Violation::new(field, format_args!("must have at most {max_chars} characters, not {chars}"));
    // Normalization composes at most a few characters into one: much longer strings need not be normalized.
    let given = value.chars().count();
    if given > max_chars * 4 {
        return Err(long(given));
    }
    let value = text::visible(value).map_err(|error| Violation::new(field, error))?;
    let chars = value.chars().count();
    if chars > max_chars { Err(long(chars)) } else { Ok(value) }
}

/// Validates metadata.
///
/// # Errors
/// A [`Violation`] of `metadata` or of `metadata.<key>`.
pub fn metadata(metadata: &Metadata) -> Result<(), Violation> {
    if metadata.len() > METADATA_MAX_KEYS {
        return Err(Violation::new("metadata", format_args!("must have at most {METADATA_MAX_KEYS} keys")));
    }
    let mut bytes = 0;
    for (key, value) in metadata {
        let field = || format!("metadata.{}", key.chars().take(METADATA_KEY_MAX_CHARS).collect::<String>());
        if key.is_empty() || key.chars().count() > METADATA_KEY_MAX_CHARS {
            return Err(Violation::new(
                field(),
                format_args!("must have a key of 1 to {METADATA_KEY_MAX_CHARS} characters"),
            ));
        }
        bytes += key.len();
        if matches!(value, MetadataValue::List(list) if list.len() > METADATA_ARRAY_MAX_ITEMS) {
            return Err(Violation::new(field(), format_args!("must have at most {METADATA_ARRAY_MAX_ITEMS} items")));
        }
        for text in value.texts() {
            bytes += text.len();
            if text.chars().count() > METADATA_VALUE_MAX_CHARS {
                return Err(Violation::new(
                    field(),
                    format_args!("must have at most {METADATA_VALUE_MAX_CHARS} characters"),
                ));
            }
        }
    }
    if bytes > METADATA_MAX_BYTES {
        return Err(Violation::new(
            "metadata",
            format_args!("must have at most {METADATA_MAX_BYTES} bytes in all, not {bytes}"),
        ));
    }
    Ok(())
}

/// The URLs that a field accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UrlRule {
    /// `https`; `http` only to localhost, for development.
    Redirect,
    /// `https` only.
    Https,
    /// `https`, `http` to localhost, or `mailto` with an email address.
    Contact,
    /// `https`, or `http` if the operator allows insecure webhooks; without user info and fragment.
    Webhook {
        /// Whether plain HTTP is allowed, as on a development ledger.
        allow_insecure: bool,
    },
}

/// Schemes that a value without `://` may begin with, so that it is not taken for a host.
const SCHEMES: [&str; 5] = ["http:", "https:", "javascript:", "data:", "mailto:"];

/// Validates a URL field.
///
/// # Errors
/// A [`Violation`] of `field`.
pub fn url(field: &str, value: &str, rule: UrlRule) -> Result<(), Violation> {
    if value.chars().count() > URL_MAX_CHARS {
        return Err(Violation::new(field, format_args!("must have at most {URL_MAX_CHARS} characters")));
    }
    if value.chars().any(|c| c.is_whitespace() || text::is_hidden(c)) {
        return Err(Violation::new(field, "must be a URL without spaces and invisible characters"));
    }
    let is_mail = rule == UrlRule::Contact && value.starts_with("mailto:");
    if !value.contains("://") && !is_mail {
        // The value with a scheme before it is a useful example only if it is a host and a path.
        let is_host = value.chars().count() <= 100
            && Url::parse(&format!("https://{value}")).is_ok()
            && value.starts_with(|c: char| c.is_alphanumeric())
            && !SCHEMES.iter().any(|scheme| value.to_ascii_lowercase().starts_with(scheme));
        let example = if is_host { value } else { "shop.example/path" };
        return Err(Violation::new(field, format_args!("must begin with a scheme, such as https://{example}")));
    }
    let url = Url::parse(value).map_err(|_| Violation::new(field, "must be an absolute URL"))?;
    if rule == UrlRule::Contact && url.scheme() == "mailto" {
        let address = url.path();
        let is_address = address.split_once('@').is_some_and(|(user, host)| !user.is_empty() && !host.is_empty());
        return if is_address { Ok(()) } else { Err(Violation::new(field, "must name a mail address")) };
    }
    let local = match url.host() {
        None => return Err(Violation::new(field, "must name a host")),
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
    };
    let (http_allowed, wanted) = match rule {
        UrlRule::Redirect => (local, "must be an https URL (http only to localhost)"),
        UrlRule::Https => (false, "must be an https URL"),
        UrlRule::Contact => (local, "must be an https or mailto URL"),
        UrlRule::Webhook { allow_insecure: true } => (true, "must be an http or https URL"),
        UrlRule::Webhook { allow_insecure: false } => (false, "must be an https URL"),
    };
    match url.scheme() {
        "https" => {}
        "http" if http_allowed => {}
        _ => return Err(Violation::new(field, wanted)),
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Violation::new(field, "must not contain a user name or password"));
    }
    if matches!(rule, UrlRule::Webhook { .. }) && url.fragment().is_some() {
        return Err(Violation::new(field, "must not contain a fragment"));
    }
    // Ports below 1024 belong to other protocols: webhooks must not be used to send requests to them.
    let is_low = |port: u16| port < 1_024 && port != 443;
    if rule == (UrlRule::Webhook { allow_insecure: false }) && url.port().is_some_and(is_low) {
        return Err(Violation::new(field, "must name port 443 or one from 1024 on"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_text_is_limited_and_has_no_control_characters() {
        assert_eq!(text("description", &"é".repeat(255), 255), Ok("é".repeat(255)));
        assert_eq!(text("description", &"e\u{301}".repeat(255), 255), Ok("é".repeat(255)));
        for (value, why) in [
            ("", "empty"),
            ("   ", "empty"),
            ("a\nb", "control"),
            (&"é".repeat(256), "255"),
            (&"x".repeat(99_999), "255"),
        ] {
            let violation = text("description", value, 255).unwrap_err();
            assert_eq!(violation.field, "description");
            assert!(violation.message.contains(why), "{violation}");
        }
    }

    #[test]
    fn violations_of_metadata_limits_name_the_key() {
        let one = |value: MetadataValue| Metadata::from([("orderId".to_owned(), value)]);
        assert_eq!(metadata(&one(MetadataValue::Text("x".repeat(500)))), Ok(()));
        assert_eq!(metadata(&one(MetadataValue::Text("x".repeat(501)))).unwrap_err().field, "metadata.orderId");
        assert_eq!(metadata(&one(MetadataValue::List(vec![String::new(); 21]))).unwrap_err().field, "metadata.orderId");
        let many: Metadata = (0..51).map(|n| (n.to_string(), MetadataValue::Text(String::new()))).collect();
        assert_eq!(metadata(&many).unwrap_err().field, "metadata");
        let big: Metadata = (0..20).map(|n| (n.to_string(), MetadataValue::Text("x".repeat(450)))).collect();
        assert!(metadata(&big).unwrap_err().message.contains("8192 bytes"));
    }

    #[test]
    fn urls_follow_the_rule_of_their_field() {
        assert_eq!(url("redirectUrl", "https://shop.example/ok?x=1#y", UrlRule::Redirect), Ok(()));
        assert_eq!(url("redirectUrl", "http://localhost:3000/ok", UrlRule::Redirect), Ok(()));
        for bare in ["localhost:3000/hook", "shop.example", "www.shop.example/a?b=c", "127.0.0.1:80"] {
            let refused = url("webhookUrl", bare, UrlRule::Https).unwrap_err();
            assert_eq!(refused.message, format!("must begin with a scheme, such as https://{bare}"));
        }
        for value in
            ["javascript:alert(1)", "data:text/html,x", r"https:\\evil.example", "https:evil.example", "/path", "?x"]
        {
            let refused = url("redirectUrl", value, UrlRule::Redirect).unwrap_err();
            assert_eq!(refused.message, "must begin with a scheme, such as https://shop.example/path", "{value}");
        }
        for hidden in
            ["https://shop.example/\u{202e}gnp", "https://shop\u{200b}.example/", "https://shop.example/\u{200d}"]
        {
            assert!(url("iconUrl", hidden, UrlRule::Https).unwrap_err().message.contains("invisible"), "{hidden:?}");
        }
        assert_eq!(url("webhookUrl", "http://127.0.0.1:9/hook", UrlRule::Webhook { allow_insecure: true }), Ok(()));
        for (value, rule) in [
            ("http://shop.example/", UrlRule::Redirect),
            ("javascript:alert(1)", UrlRule::Redirect),
            ("data:text/html,x", UrlRule::Https),
            ("/relative", UrlRule::Redirect),
            ("https://", UrlRule::Https),
            ("https://u:p@shop.example/", UrlRule::Redirect),
            ("http://shop.example/", UrlRule::Webhook { allow_insecure: false }),
            ("https://shop.example/#f", UrlRule::Webhook { allow_insecure: false }),
            ("https://shop.example:22/", UrlRule::Webhook { allow_insecure: false }),
            ("https://shop.example:80/", UrlRule::Webhook { allow_insecure: false }),
            ("https://shop.example/ x", UrlRule::Https),
        ] {
            assert_eq!(url("someUrl", value, rule).unwrap_err().field, "someUrl", "{value}");
        }
    }
}
