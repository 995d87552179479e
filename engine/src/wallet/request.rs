//! The identity of a request: which repeats are one purchase.

use std::fmt;

use sha2::{Digest, Sha256};

/// The identity of a paid request: method, URL, body and idempotency key. Two requests with one key are one purchase.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestKey(pub [u8; 32]);

impl RequestKey {
    /// Returns the identity of a request. Each part is hashed with its length, so that no two requests share one.
    #[must_use]
    pub fn of(method: &str, url: &str, body: &[u8], idempotency_key: Option<&str>) -> Self {
        let body = Sha256::digest(body);
        let key = idempotency_key.map(str::as_bytes);
        let mut hash = Sha256::new();
        for part in [method.as_bytes(), url.as_bytes(), &body, key.unwrap_or_default()] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        hash.update([u8::from(key.is_some())]);
        Self(hash.finalize().into())
    }

    /// Parses 64 hexadecimal digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        hex::decode_to_slice(text, &mut bytes).ok().map(|()| Self(bytes))
    }
}

/// Formats as 64 hexadecimal digits.
impl fmt::Display for RequestKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for RequestKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_distinguishes_two_requests_and_repeats_are_one() {
        let of = RequestKey::of;
        let first = of("GET", "https://a.example/x", b"", None);
        assert_eq!(first, of("GET", "https://a.example/x", b"", None));
        let others = [
            of("POST", "https://a.example/x", b"", None),
            of("GET", "https://a.example/y", b"", None),
            of("GET", "https://a.example/x", b"{}", None),
            of("GET", "https://a.example/x", b"", Some("")),
            of("GET", "https://a.example/x", b"", Some("1")),
            of("GEThttps://a.example/x", "", b"", None),
        ];
        assert!(others.iter().all(|other| *other != first));
        assert_eq!(RequestKey::parse(&first.to_string()), Some(first));
        assert_eq!(RequestKey::parse("ab"), None);
    }
}
