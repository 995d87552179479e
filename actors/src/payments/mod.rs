//! Payments: the registry of active ones, the actor of each, settlement, and transfers that match none.

pub(crate) mod changes;
pub(crate) mod expiry;
pub(crate) mod handle;
pub(crate) mod messages;
pub(crate) mod payment;
pub(crate) mod registry;
pub(crate) mod rows;
pub(crate) mod sales;
pub(crate) mod settlement;
pub(crate) mod transfer_log;
pub(crate) mod transfers;
pub(crate) mod unmatched;
pub(crate) mod waiting;
pub(crate) mod watchers;
