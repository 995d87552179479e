//! Hosts of a policy's lists: a name, `*.` and a domain, and optionally a port.

use std::fmt;

/// The host and port that a request goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Host<'a> {
    /// The name in lower case, or an IP address; IPv6 in brackets.
    pub name: &'a str,
    /// The port, also where the URL leaves it out.
    pub port: u16,
}

/// A pattern of hosts: `pay.example`, `*.shop.example`, `127.0.0.1:8080`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPattern {
    name: String,
    covers_subdomains: bool,
    port: Option<u16>,
}

/// The reason why a text is not a pattern of hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a host such as `pay.example`, `*.shop.example` or `127.0.0.1:8080`, without a scheme and a path")]
pub struct PatternError;

impl HostPattern {
    /// Parses a pattern. Letters are compared in lower case.
    ///
    /// # Errors
    /// [`PatternError`] for a URL, an empty name, a bad port or a `*` elsewhere than at the start.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let (covers_subdomains, rest) = match text.strip_prefix("*.") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (name, port) = match rest.rsplit_once(':') {
            // Colons inside brackets belong to an IPv6 address.
            Some((name, port)) if !port.ends_with(']') => {
                (name, Some(port.parse().ok().filter(|port| *port > 0).ok_or(PatternError)?))
            }
            _ => (rest, None),
        };
        let is_ipv6 = name.starts_with('[') && name.ends_with(']') && !covers_subdomains;
        let is_name =
            |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') || (is_ipv6 && "[:]".contains(c));
        if name.is_empty() || name.starts_with('.') || name.ends_with('.') || !name.chars().all(is_name) {
            return Err(PatternError);
        }
        Ok(Self { name: name.to_ascii_lowercase(), covers_subdomains, port })
    }

    /// Returns whether the pattern covers a host. `*.a.example` covers every name below `a.example`, and not itself.
    #[must_use]
    pub fn covers(&self, host: Host<'_>) -> bool {
        let name = host.name.strip_suffix('.').unwrap_or(host.name);
        let is_name = if self.covers_subdomains {
            let below = name.len().checked_sub(self.name.len()).filter(|below| *below > 1);
            below.is_some_and(|below| name[below..] == *self.name && name.as_bytes()[below - 1] == b'.')
        } else {
            name == self.name
        };
        is_name && self.port.is_none_or(|port| port == host.port)
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let star = if self.covers_subdomains { "*." } else { "" };
        write!(f, "{star}{}", self.name)?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_covers_its_host_and_no_lookalike() {
        let covers = |pattern: &str, name: &str, port| HostPattern::parse(pattern).unwrap().covers(Host { name, port });
        assert!(covers("pay.example", "pay.example", 443) && covers("Pay.Example", "pay.example.", 80));
        assert!(!covers("pay.example", "evil-pay.example", 443) && !covers("pay.example", "pay.example.evil", 443));
        assert!(covers("*.example", "pay.example", 443) && covers("*.example", "a.b.example", 443));
        assert!(!covers("*.example", "example", 443) && !covers("*.example", "notexample", 443));
        assert!(!covers("*.example", ".example", 443));
        assert!(covers("127.0.0.1:8080", "127.0.0.1", 8080) && !covers("127.0.0.1:8080", "127.0.0.1", 80));
        assert!(covers("[::1]:8080", "[::1]", 8080) && covers("[::1]", "[::1]", 80));
    }

    #[test]
    fn what_is_no_host_is_refused() {
        for text in
            ["", "*", "*.", "https://a.example", "a.example/x", "a b", "a.*.example", "a:0", "a:x", "a:70000", ".a"]
        {
            assert_eq!(HostPattern::parse(text), Err(PatternError), "{text}");
        }
        for text in ["a.example", "*.a.example:8080", "[::1]:80"] {
            assert_eq!(HostPattern::parse(text).unwrap().to_string(), text);
        }
    }
}
