//! Reads of the audit log, newest entry first.

use engine::{audit::Entry, ids::MerchantId};

use crate::store::{
    error::Read,
    topic::topic,
    wrapped::{Call, Wrapped},
};

/// A page of the audit log, newest entry first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditQuery {
    /// Only entries before this sequence number.
    pub before: Option<u64>,
    /// Maximum number of entries.
    pub limit: usize,
    /// Only entries in which this merchant is the actor or the subject.
    pub merchant: Option<MerchantId>,
}

topic! {
    /// The audit log.
    AuditLog {
        /// Returns entries of the audit log, newest first.
        audit(query: AuditQuery) -> Vec<Entry>;
    }
}
