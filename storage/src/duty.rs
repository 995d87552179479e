//! Duties: work that one engine at a time does.
//!
//! A duty saves work and decides nothing: two engines that hold one at once waste work, and what they write is still guarded by
//! versions and unique keys. An engine holds its duties for as long as its lease lasts. Each change of the holder increments the
//! duty's term; a write that names the term ([`Write::OnDuty`](crate::Write::OnDuty)) is refused once the duty has passed on.

use std::fmt;

use engine::ids::EndpointId;

/// Identifies a running engine: drawn at its start, never 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EngineId(u64);

impl EngineId {
    /// Returns the id of 64 bits; 0 counts as 1.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(if bits == 0 { 1 } else { bits })
    }

    /// Returns the id's 64 bits.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }
}

impl fmt::Display for EngineId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Work that one engine at a time does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Duty {
    /// Reading the ledger, expiring payments, and adopting claims that nobody follows.
    Scanner,
    /// Reading what no transaction of a block contains.
    VirtualTransfers,
    /// Comparing the store with the ledger every day.
    Reconciliation,
    /// Reading prices.
    Rates,
    /// The search index, retention and invoices.
    Housekeeping,
    /// Delivering the webhooks of the merchants of a bucket.
    Webhooks(u8),
}

/// Buckets that merchants are divided into.
pub(crate) const BUCKETS: usize = 256;

impl Duty {
    /// The duties of which there is one each.
    pub const SINGLE: [Self; 5] =
        [Self::Scanner, Self::VirtualTransfers, Self::Reconciliation, Self::Rates, Self::Housekeeping];

    /// Returns every duty, in a fixed order.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::SINGLE.into_iter().chain((0..=u8::MAX).map(Self::Webhooks))
    }

    /// Returns the duty of delivering the webhooks of an endpoint.
    #[must_use]
    pub const fn webhooks_of(endpoint: EndpointId) -> Self {
        // The most significant byte of a product by an odd constant depends on all bits of the id.
        Self::Webhooks(endpoint.bits().wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835).to_be_bytes()[0])
    }

    /// Returns whether the duty needs a ledger node.
    #[must_use]
    pub const fn needs_nodes(self) -> bool {
        matches!(self, Self::Scanner | Self::VirtualTransfers | Self::Reconciliation | Self::Rates)
    }

    /// Returns the kind of the duty: one word for all buckets.
    #[must_use]
    pub const fn kind(self) -> &'static str {
        match self {
            Self::Scanner => "scanner",
            Self::VirtualTransfers => "virtual_transfers",
            Self::Reconciliation => "reconciliation",
            Self::Rates => "rates",
            Self::Housekeeping => "housekeeping",
            Self::Webhooks(_) => "webhooks",
        }
    }

    /// Reads a duty's name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        if let Some(bucket) = name.strip_prefix("webhooks/") {
            let is_canonical = bucket.len() == 2 && bucket.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'));
            return u8::from_str_radix(bucket, 16).ok().filter(|_| is_canonical).map(Self::Webhooks);
        }
        Self::SINGLE.into_iter().find(|duty| duty.kind() == name)
    }
}

impl fmt::Display for Duty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Webhooks(bucket) => write!(f, "webhooks/{bucket:02x}"),
            single => f.write_str(single.kind()),
        }
    }
}

/// Some of the buckets that webhook endpoints are divided into.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Buckets([u64; BUCKETS / 64]);

impl Buckets {
    /// No bucket.
    pub const NONE: Self = Self([0; BUCKETS / 64]);
    /// Every bucket.
    pub const ALL: Self = Self([u64::MAX; BUCKETS / 64]);

    /// Adds a bucket.
    pub const fn insert(&mut self, bucket: u8) {
        self.0[bucket as usize / 64] |= 1 << (bucket % 64);
    }

    /// Returns whether a bucket is among them.
    #[must_use]
    pub const fn contains(&self, bucket: u8) -> bool {
        self.0[bucket as usize / 64] & (1 << (bucket % 64)) != 0
    }

    /// Returns whether the bucket of an endpoint is among them.
    #[must_use]
    pub const fn has_endpoint(&self, endpoint: EndpointId) -> bool {
        match Duty::webhooks_of(endpoint) {
            Duty::Webhooks(bucket) => self.contains(bucket),
            _ => false,
        }
    }
}

impl Default for Buckets {
    fn default() -> Self {
        Self::ALL
    }
}

impl fmt::Debug for Buckets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count: u32 = self.0.iter().map(|word| word.count_ones()).sum();
        write!(f, "Buckets({count} of {BUCKETS})")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_duty_has_a_name_of_its_own_that_is_read_back() {
        let names: BTreeSet<String> = Duty::all().map(|duty| duty.to_string()).collect();
        assert_eq!(names.len(), Duty::SINGLE.len() + BUCKETS);
        for duty in Duty::all() {
            assert_eq!(Duty::parse(&duty.to_string()), Some(duty));
        }
        for wrong in
            ["", "webhooks", "webhooks/", "webhooks/7", "webhooks/0FF", "webhooks/+f", "webhooks/FF", "Scanner"]
        {
            assert_eq!(Duty::parse(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn endpoints_are_spread_over_all_buckets() {
        let mut buckets = Buckets::NONE;
        let mut used = BTreeSet::new();
        for number in 0..4_096u128 {
            // Ids of one millisecond differ in their low bits, ids of other times in their high ones.
            for id in [number, number << 80].map(EndpointId::from_bits) {
                let Duty::Webhooks(bucket) = Duty::webhooks_of(id) else { panic!("no bucket") };
                used.insert(bucket);
                buckets.insert(bucket);
                assert!(buckets.has_endpoint(id));
            }
        }
        assert_eq!(used.len(), BUCKETS);
        assert_eq!(buckets, Buckets::ALL);
        assert!(!Buckets::NONE.contains(0) && Buckets::ALL.contains(255));
    }
}
