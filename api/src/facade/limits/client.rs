//! The IP address of the client behind trusted proxies.

use std::net::{IpAddr, SocketAddr};

use http::HeaderMap;
use ipnet::IpNet;

pub(crate) use crate::ip_connections::key_of;

const FORWARDED_FOR: &str = "x-forwarded-for";

/// Returns the IP address of the client: the peer, or, if that is a trusted proxy, the rightmost untrusted address of
/// `X-Forwarded-For`. Addresses further left can be forged.
pub(crate) fn client_ip(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) -> IpAddr {
    let is_trusted = |address: IpAddr| trusted.iter().any(|network| network.contains(&address));
    let mut address = peer.to_canonical();
    if !is_trusted(address) {
        return address;
    }
    let values = headers.get_all(FORWARDED_FOR).iter().collect::<Vec<_>>();
    let hops = values.into_iter().rev().flat_map(|value| value.to_str().unwrap_or("?").rsplit(','));
    for hop in hops {
        // After an invalid hop, the last valid address is used.
        let Some(named) = parse(hop.trim()) else { return address };
        address = named;
        if !is_trusted(address) {
            return address;
        }
    }
    address
}

/// Parses an IP address with or without a port.
fn parse(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let address = bare.parse::<IpAddr>().or_else(|_| text.parse::<SocketAddr>().map(|address| address.ip()));
    address.ok().map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn client(peer: &str, forwarded: &[&'static str]) -> String {
        let trusted: Vec<IpNet> =
            ["10.0.0.0/8", "fd00::/8"].iter().map(|net| net.parse().expect("a network")).collect();
        let mut headers = HeaderMap::new();
        for value in forwarded {
            headers.append(FORWARDED_FOR, HeaderValue::from_static(value));
        }
        client_ip(peer.parse().expect("an address"), &headers, &trusted).to_string()
    }

    #[test]
    fn only_a_trusted_proxy_can_set_the_client() {
        assert_eq!(client("198.51.100.1", &["203.0.113.7"]), "198.51.100.1");
        assert_eq!(client("10.0.0.1", &["203.0.113.7"]), "203.0.113.7");
        assert_eq!(client("::ffff:10.0.0.1", &["203.0.113.7"]), "203.0.113.7");
        assert_eq!(client("10.0.0.1", &[]), "10.0.0.1");
    }

    #[test]
    fn the_rightmost_untrusted_address_is_the_client() {
        assert_eq!(client("10.0.0.1", &["1.1.1.1, 203.0.113.7, 10.0.0.2"]), "203.0.113.7");
        assert_eq!(client("10.0.0.1", &["1.1.1.1", "203.0.113.7", "10.0.0.2"]), "203.0.113.7");
        assert_eq!(client("10.0.0.1", &["10.0.0.3,10.0.0.2"]), "10.0.0.3");
        assert_eq!(client("fd00::1", &["203.0.113.7:4711"]), "203.0.113.7");
        assert_eq!(client("10.0.0.1", &["[2001:db8::1]:80"]), "2001:db8::1");
    }

    #[test]
    fn an_invalid_address_is_ignored() {
        for junk in ["", "unknown", "203.0.113.7, nonsense", "203.0.113.7,", "1.2.3.4.5"] {
            assert_eq!(client("10.0.0.1", &[junk]), "10.0.0.1", "{junk}");
        }
    }

    #[test]
    fn a_64_prefix_of_ipv6_is_one_caller() {
        let key = |text: &str| key_of(text.parse().expect("an address"));
        assert_eq!(key("2001:db8:1:2::1"), key("2001:db8:1:2:ffff::9"));
        assert_ne!(key("2001:db8:1:2::1"), key("2001:db8:1:3::1"));
        assert_ne!(key("203.0.113.7"), key("203.0.113.8"));
        assert_eq!(key("203.0.113.7"), key("::ffff:203.0.113.7"));
    }
}
