//! Operation of the engine: billing, reconciliation, housekeeping and statistics.

pub(crate) mod billing;
pub(crate) mod figures;
pub(crate) mod housekeeping;
pub(crate) mod reconciliation;
pub(crate) mod retention;
