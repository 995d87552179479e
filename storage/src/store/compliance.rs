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
        /// Returns where a merchant stands with compliance; one without a past stands well.
        standing(merchant: MerchantId) -> ComplianceStatus;
    }
}
