//! Operations: health, billing, reconciliation and maintenance.

pub(crate) mod billing;
pub(crate) mod handle;
pub(crate) mod housekeeping;
pub(crate) mod ledger_metrics;
pub(crate) mod reconciliation;
pub(crate) mod retention;
