//! Queries over one snapshot.

pub(crate) mod accounts;
pub(crate) mod audit;
pub(crate) mod billing;
pub(crate) mod budget;
pub(crate) mod claims;
pub(crate) mod compliance;
pub(crate) mod days;
pub(crate) mod deadlines;
pub(crate) mod deliveries;
pub(crate) mod delivery_list;
pub(crate) mod duties;
pub(crate) mod idempotency;
pub(crate) mod ledger_entries;
pub(crate) mod listed;
pub(crate) mod merchants;
pub(crate) mod payments;
pub(crate) mod postings;
pub(crate) mod search;
pub(crate) mod transfers;
pub(crate) mod unmatched;
