//! The number of open connections of each IP address, for each listener.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, Mutex, PoisonError},
};

/// Returns the key under which the limits of an IP address are counted: an IPv4 address, or the /64 prefix of an IPv6
/// address, because providers assign at least a /64 to each customer.
pub(crate) fn key_of(ip: IpAddr) -> u128 {
    match ip.to_canonical() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().to_bits(),
        IpAddr::V6(ip) => Ipv6Addr::to_bits(ip) & (u128::MAX << 64),
    }
}

/// Open connections by IP address; at most as many entries as connections.
#[derive(Debug)]
pub(crate) struct IpConnections {
    max_per_ip: usize,
    open: Mutex<BTreeMap<u128, usize>>,
}

/// The error of an IP address that has the maximum number of connections.
#[derive(Debug)]
pub(crate) struct TooManyConnections;

impl IpConnections {
    /// Limits each IP address to `max_per_ip` connections, but not more than half of all `connections`. `None` means no
    /// limit.
    pub(crate) fn new(connections: usize, max_per_ip: Option<usize>) -> Self {
        let max_per_ip = max_per_ip.map_or(usize::MAX, |limit| limit.min((connections / 2).max(1)));
        Self { max_per_ip, open: Mutex::default() }
    }

    /// Counts a connection of a client until the permit is dropped; `None` without a limit.
    ///
    /// # Errors
    /// If the client has the maximum number of connections.
    pub(crate) fn acquire(self: &Arc<Self>, client: IpAddr) -> Result<Option<IpPermit>, TooManyConnections> {
        if self.max_per_ip == usize::MAX {
            return Ok(None);
        }
        let client = key_of(client);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let count = open.entry(client).or_default();
        if *count >= self.max_per_ip {
            return Err(TooManyConnections);
        }
        *count += 1;
        Ok(Some(IpPermit { connections: Arc::clone(self), client }))
    }
}

/// A counted connection of an IP address.
#[derive(Debug)]
pub(crate) struct IpPermit {
    connections: Arc<IpConnections>,
    client: u128,
}

impl Drop for IpPermit {
    fn drop(&mut self) {
        let mut open = self.connections.open.lock().unwrap_or_else(PoisonError::into_inner);
        match open.get_mut(&self.client) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(open.remove(&self.client)),
        }
    }
}
