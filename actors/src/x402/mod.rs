//! Payments by HTTP 402, for sessions and for the requirements of other servers.

pub(crate) mod facilitator;
pub(crate) mod requirements;
pub(crate) mod verify;
