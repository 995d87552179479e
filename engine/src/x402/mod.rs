//! Payments over HTTP 402 (x402): requirements, payloads and checks.
//!
//! Pure functions; callers fetch authorities, claim and broadcast.

mod body;
mod checks;
mod claim_record;
mod offer;
mod payload;
mod proof;
mod reason;
mod signed;
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
pub use signed::{
    OFFER_RECEIPT, OfferTerms, ReceiptKey, ReceiptKeys, ReceiptTerms, RetiredReceiptKey, Signer, key_set,
    offer_extension, receipt_extension, receipt_key_id,
};

/// The supported scheme: an exact amount.
pub const SCHEME: &str = "exact";
/// The name of the network in responses.
pub const NETWORK: &str = "hive:mainnet";
/// The CAIP-2 name of the network: the chain id truncated to 32 characters.
pub const NETWORK_CAIP2: &str = "hive:beeab0de000000000000000000000000";

/// Returns whether `network` is a name of the supported network.
#[must_use]
pub fn is_supported_network(network: &str) -> bool {
    network == NETWORK || network == NETWORK_CAIP2
}
