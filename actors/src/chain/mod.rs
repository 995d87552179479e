//! The ledger: nodes, accounts, prices and scan progress.

pub mod hive_rpc;

pub(crate) mod accounts;
pub(crate) mod handle;
pub(crate) mod ledger;
pub(crate) mod ledger_view;
pub(crate) mod nodes;
pub(crate) mod notes;
pub(crate) mod rates;
pub(crate) mod submission;
