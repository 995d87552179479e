//! Merchants: registration, API keys, proof of accounts, compliance.

pub(crate) mod actor;
pub(crate) mod compliance;
pub(crate) mod endpoints;
pub(crate) mod handle;
pub(crate) mod keys;
pub(crate) mod messages;
pub(crate) mod ownership;
pub(crate) mod registration;
