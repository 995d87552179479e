//! Payments by HTTP 402, for sessions and for the requirements of other servers.

pub(crate) mod checks;
pub(crate) mod claims;
pub(crate) mod facilitator;
pub(crate) mod handle;
pub(crate) mod orphans;
pub(crate) mod receipts;
pub(crate) mod requirements;
pub(crate) mod session;
pub(crate) mod verify;
