//! Reads of the audit log, newest entry first.

use engine::{audit::Entry, ids::MerchantId};

use crate::store::{
    error::Read,
    topic::topic,
    wrapped::{Call, Wrapped},
};

/// A part of the audit log, newest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditQuery {
    /// Only entries before this place.
    pub before: Option<u64>,
    /// Entries at most.
    pub limit: usize,
    /// Only what this merchant did, or what concerns it.
    pub merchant: Option<MerchantId>,
}

topic! {
    /// The audit log.
    AuditLog {
        /// Returns entries of the audit log, newest first.
        audit(query: AuditQuery) -> Vec<Entry>;
    }
}
