//! Payment by HTTP 402: checkout URLs for programs, and the facilitator endpoints.
//!
//! A payment header can be redeemed by its holder: neither it nor a signed transaction is ever logged, and no response
//! to one is a redirect.

mod address;
mod facilitator;
mod header;
mod key_set;
mod responses;
mod verdict;

pub(crate) use address::visit;
pub(crate) use facilitator::{health, refused, settle, supported, supported_networks, verify};
pub(crate) use header::is_shown;
pub(crate) use key_set::key_set;
pub(crate) use responses::{cors, preflight};
#[cfg(test)]
pub(crate) use verdict::request;
