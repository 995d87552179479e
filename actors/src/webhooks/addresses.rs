//! The permitted addresses of webhooks: public ones, and those that the operator allows.
//!
//! A merchant chooses the URL, and a name can resolve to any address: without this check, the engine would give access
//! to its own network. The check runs at every connection, on the addresses that are then used.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
};

pub use ipnet::IpNet;
use ipnet::{Ipv4Net, Ipv6Net};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// The permitted addresses.
#[derive(Debug, Clone, Default)]
pub struct AllowedAddresses {
    /// Private networks that the operator allows.
    extra: Vec<IpNet>,
}

/// IPv4 networks that are not the public internet (IANA's special-purpose registry).
const DENIED_V4: [(Ipv4Addr, u8); 15] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
];

/// The same for IPv6: everything outside 2000::/3, and tunnels, test and documentation ranges inside it.
const PUBLIC_V6: (Ipv6Addr, u8) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);
const DENIED_V6: [(Ipv6Addr, u8); 5] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
    (Ipv6Addr::new(0x5f00, 0, 0, 0, 0, 0, 0, 0), 16),
];

/// Domains that are never public (IANA's special-use names, and names that routers use).
const LOCAL_NAMES: [&str; 8] = ["localhost", "local", "internal", "home.arpa", "lan", "test", "invalid", "onion"];

impl AllowedAddresses {
    /// Allows the public internet and these networks.
    #[must_use]
    pub fn public_and(extra: Vec<IpNet>) -> Self {
        Self { extra }
    }

    /// Returns whether a name can be public. If the operator allows private networks, private names are permitted.
    #[must_use]
    pub fn may_name(&self, host: &str) -> bool {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        let is_local = |suffix: &&str| host == **suffix || host.ends_with(&format!(".{suffix}"));
        !self.extra.is_empty() || (host.contains('.') && !LOCAL_NAMES.iter().any(is_local))
    }

    /// Returns whether an address is permitted.
    #[must_use]
    pub fn allows(&self, address: IpAddr) -> bool {
        // ::ffff:127.0.0.1 is 127.0.0.1 to the kernel.
        let address = address.to_canonical();
        self.extra.iter().any(|network| network.contains(&address)) || is_public(address)
    }
}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            !DENIED_V4.iter().any(|(network, len)| Ipv4Net::new_assert(*network, *len).contains(&address))
        }
        IpAddr::V6(address) => {
            let within = |(network, len): (Ipv6Addr, u8)| Ipv6Net::new_assert(network, len).contains(&address);
            within(PUBLIC_V6) && !DENIED_V6.into_iter().any(within)
        }
    }
}

/// The error of a name without a permitted address.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("{BLOCKED}")]
pub(crate) struct Blocked;

/// The marker of a blocked address in the causes of an error.
pub(crate) const BLOCKED: &str = "the name has no permitted address";

/// Resolves names and keeps only the permitted addresses. Every connection resolves anew: a name that was public when
/// it was saved may be private now.
#[derive(Clone)]
pub(crate) struct Guarded {
    pub(crate) resolver: Arc<dyn Resolve>,
    pub(crate) allowed: AllowedAddresses,
}

impl Resolve for Guarded {
    fn resolve(&self, name: Name) -> Resolving {
        let (found, allowed) = (self.resolver.resolve(name), self.allowed.clone());
        Box::pin(async move {
            let kept: Vec<SocketAddr> = found.await?.filter(|address| allowed.allows(address.ip())).collect();
            if kept.is_empty() {
                return Err(Blocked.into());
            }
            Ok(Box::new(kept.into_iter()) as Addrs)
        })
    }
}

/// Resolves names by the operating system.
pub(crate) struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_addresses_may_be_dialled() {
        let public = AllowedAddresses::default();
        for allowed in ["1.1.1.1", "93.184.216.34", "2606:2800:220:1::1", "::ffff:1.1.1.1", "172.32.0.1", "100.128.0.1"]
        {
            assert!(public.allows(allowed.parse().unwrap()), "{allowed}");
        }
        for denied in [
            "127.0.0.1",
            "127.8.9.1",
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.169.254",
            "0.0.0.0",
            "100.64.0.1",
            "192.0.0.1",
            "192.0.2.1",
            "192.88.99.1",
            "198.18.0.1",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "fe80::1",
            "fc00::1",
            "fd12::1",
            "ff02::1",
            "2001:db8::1",
            "2001::1",
            "2002:7f00:1::",
            "3fff::1",
            "5f00::1",
            "64:ff9b::7f00:1",
            "100::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::7f00:1",
        ] {
            assert!(!public.allows(denied.parse().unwrap()), "{denied}");
        }
    }

    #[test]
    fn only_names_of_the_public_internet_are_taken() {
        let public = AllowedAddresses::default();
        for name in ["shop.example", "a.b.shop.example.", "localhost.shop.example", "internal-tools.example"] {
            assert!(public.may_name(name), "{name}");
        }
        for name in ["localhost", "LOCALHOST.", "x.localhost", "printer", "nas.local", "vault.internal", "a.home.arpa"]
        {
            assert!(!public.may_name(name), "{name}");
        }
        assert!(AllowedAddresses::public_and(vec!["10.0.0.0/8".parse().unwrap()]).may_name("vault.internal"));
    }

    #[test]
    fn an_operator_may_allow_more() {
        let own = AllowedAddresses::public_and(vec!["10.1.0.0/16".parse().unwrap(), "::1/128".parse().unwrap()]);
        for (address, allowed) in [("10.1.2.3", true), ("10.2.0.1", false), ("::1", true), ("::ffff:10.1.2.3", true)] {
            assert_eq!(own.allows(address.parse().unwrap()), allowed, "{address}");
        }
    }
}
