//! The audit log: each entry is appended by the commit that it describes.

use engine::mutant;
use engine::{audit::Entry, ids::MerchantId};

use crate::{
    embedded::{commit::group::Group, fault::Fault},
    record,
};

/// An encoded entry of the audit log, and the merchants it concerns.
#[derive(Debug)]
pub(crate) struct EncodedEntry {
    pub(crate) record: Vec<u8>,
    merchant: u128,
    actor: Option<u128>,
}

impl EncodedEntry {
    /// Encodes an entry.
    pub(crate) fn of(entry: Entry) -> Self {
        let (merchant, actor) = (entry.merchant.bits(), entry.actor.merchant.map(MerchantId::bits));
        Self { record: record::audit_to_bytes(entry), merchant, actor }
    }

    /// Returns the merchants that the entry concerns, without duplicates.
    pub(crate) fn merchants(&self) -> impl Iterator<Item = u128> {
        std::iter::once(self.merchant)
            .chain(self.actor.filter(|actor| *actor != self.merchant && !mutant!("audit-not-listed-for-its-actor")))
    }
}

impl Group<'_> {
    /// Appends an entry to the audit log and lists it for the merchants it concerns.
    pub(crate) fn append_audit(&mut self, audited: &EncodedEntry) -> Result<(), Fault> {
        let log = self.tables.audit();
        let mut next = log.last()?.map_or(0, |(seq, _)| seq.value()) + 1;
        // Rows are appended after a damaged row, which is never overwritten.
        while log.has(next)? {
            next += 1;
        }
        log.insert(next, audited.record.as_slice());
        for merchant in audited.merchants() {
            self.tables.audit_by_merchant().insert((merchant, next), ());
        }
        Ok(())
    }
}
