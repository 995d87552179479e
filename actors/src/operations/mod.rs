//! Operation of the engine: health, billing, reconciliation and housekeeping.

pub(crate) mod billing;
pub(crate) mod handle;
pub(crate) mod housekeeping;
pub(crate) mod ledger_metrics;
pub(crate) mod reconciliation;
pub(crate) mod retention;
