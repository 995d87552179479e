//! Merchants: registration, API keys, proof of accounts, compliance.

pub(crate) mod actor;
pub(crate) mod compliance;
pub(crate) mod keys;
pub(crate) mod ownership;
pub(crate) mod registration;
