//! Payment over HTTP 402: what is asked for, what a payer hands in, and the checks in their order.
//!
//! All of it is decided by its arguments; fetching authorities, claiming and broadcasting happen above.

mod body;
mod checks;
mod claim_record;
mod offer;
mod payload;
mod proof;
mod reason;
#[cfg(test)]
mod tests;

pub use body::{BodyError, FacilitatorRequest, PaymentTarget};
pub use checks::{CheckedPayment, Expected, MemoRule, authorize, candidate_ids, check_balance, is_bound};
pub use claim_record::{ClaimOutcome, ClaimRecord, Facilitation, Purpose};
pub use offer::{Offer, OfferFee, body_v1, requirements_v2};
pub use payload::{
    AcceptedRequirements, HeaderError, MAX_HEADER_BYTES, PaymentPayload, Requirements, Version, decode_header,
    encode_header,
};
pub use proof::PayerProof;
pub use reason::{Reason, Refused};

/// The one scheme: an exact amount.
pub const SCHEME: &str = "exact";
/// The network as it is always written.
pub const NETWORK: &str = "hive:mainnet";
/// The CAIP-2 name of the network: the chain's id cut to 32 characters.
pub const NETWORK_CAIP2: &str = "hive:beeab0de000000000000000000000000";

/// Returns whether a text names our network.
#[must_use]
pub fn is_supported_network(network: &str) -> bool {
    network == NETWORK || network == NETWORK_CAIP2
}
