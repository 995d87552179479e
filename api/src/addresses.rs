//! Open connections by IP address, for each listener.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, Mutex, PoisonError},
};

/// Returns what an address is limited under: itself, or its /64, which is what one customer is given.
pub(crate) fn key_of(address: IpAddr) -> u128 {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => Ipv6Addr::to_bits(address) & (u128::MAX << 64),
    }
}

/// Open connections by IP address; at most as many entries as connections.
#[derive(Debug)]
pub(crate) struct Addresses {
    most: usize,
    open: Mutex<BTreeMap<u128, usize>>,
}

/// One address has as many connections as it may have.
#[derive(Debug)]
pub(crate) struct Full;

impl Addresses {
    /// Allows each address `per_address` of all `connections`; none: as many as there are. No address may have more than
    /// half of all connections, whatever the setting says.
    pub(crate) fn new(connections: usize, per_address: Option<usize>) -> Self {
        let most = per_address.map_or(usize::MAX, |most| most.min((connections / 2).max(1)));
        Self { most, open: Mutex::default() }
    }

    /// Counts a connection of a client.
    pub(crate) fn enter(self: &Arc<Self>, client: IpAddr) -> Result<Option<Place>, Full> {
        if self.most == usize::MAX {
            return Ok(None);
        }
        let client = key_of(client);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let own = open.entry(client).or_default();
        if *own >= self.most {
            return Err(Full);
        }
        *own += 1;
        Ok(Some(Place { addresses: Arc::clone(self), client }))
    }
}

/// A connection among those of its address.
#[derive(Debug)]
pub(crate) struct Place {
    addresses: Arc<Addresses>,
    client: u128,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.addresses.open.lock().unwrap_or_else(PoisonError::into_inner);
        match open.get_mut(&self.client) {
            Some(own) if *own > 1 => *own -= 1,
            _ => drop(open.remove(&self.client)),
        }
    }
}
