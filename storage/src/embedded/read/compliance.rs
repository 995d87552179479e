//! Reads of the compliance status of merchants.

use engine::{compliance::ComplianceStatus, ids::MerchantId};

use crate::{
    embedded::{fault::Fault, wal::snapshot::Snapshot},
    record,
};

pub(crate) fn read(merchant: u128, bytes: &[u8]) -> Result<ComplianceStatus, Fault> {
    record::compliance_from_bytes(bytes).map_err(Fault::damaged("compliance_statuses", MerchantId::from_bits(merchant)))
}

/// Returns the compliance status of a merchant.
pub(crate) fn compliance_status(snapshot: &Snapshot, merchant: MerchantId) -> Result<ComplianceStatus, Fault> {
    match snapshot.compliance_statuses().get(merchant.bits())? {
        Some(bytes) => read(merchant.bits(), bytes.value()),
        None => Ok(ComplianceStatus::default()),
    }
}
