//! What can be read: query types and their results.

pub(crate) mod query;
pub(crate) mod report;
