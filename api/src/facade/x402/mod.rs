//! Payment by HTTP 402: the checkout addresses for programs, and the facilitator's own addresses.
//!
//! A payment header is money in the hand of who holds it: neither it nor a signed transaction is ever logged, and no
//! answer to one leads elsewhere (3xx).

mod address;
mod facilitator;
mod header;
mod judge;
mod responses;

pub(crate) use address::visit;
pub(crate) use facilitator::{health, refused, settle, supported, supported_networks, verify};
pub(crate) use header::is_shown;
#[cfg(test)]
pub(crate) use judge::request;
pub(crate) use responses::{cors, preflight};
