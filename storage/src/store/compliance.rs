//! The compliance status of merchants.

use engine::{compliance::ComplianceStatus, ids::MerchantId};

use crate::store::{
    error::Read,
    topic::topic,
    wrapped::{Call, Wrapped},
};

topic! {
    /// The compliance status of merchants.
    Compliance {
        /// Returns the compliance status of a merchant; the default for a merchant without payments.
        compliance_status(merchant: MerchantId) -> ComplianceStatus;
    }
}
