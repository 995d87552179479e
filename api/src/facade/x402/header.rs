//! The payment header: whether there is one, and what it says.

use engine::x402::{HeaderError, PaymentPayload};
use http::{HeaderMap, HeaderName};

use crate::facade::x402::judge::Denial;

/// The two names of the header, of version 1 and of version 2; either may hold either version.
const NAMES: [HeaderName; 2] = [HeaderName::from_static("x-payment"), HeaderName::from_static("payment-signature")];
/// Bytes of its value at most.
pub(crate) const MAX_BYTES: usize = 16 * 1024;

/// What a request shows of a payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Shown {
    /// Nothing.
    Nothing,
    /// More than a header may hold.
    TooLarge,
    /// Something that is no payment header; the sentence says why.
    Malformed(&'static str),
    /// JSON that is no payment.
    Refused(Denial),
    /// A payment.
    Payment(Box<PaymentPayload>),
}

/// Says whether a request shows a payment, sound or not: such a caller is a program, whatever it accepts.
pub(crate) fn is_shown(headers: &HeaderMap) -> bool {
    NAMES.iter().any(|name| headers.contains_key(name))
}

/// Says whether a browser only looks ahead: nobody has decided to pay.
pub(crate) fn is_prefetch(headers: &HeaderMap) -> bool {
    ["sec-purpose", "purpose", "x-moz"].iter().any(|name| {
        headers.get_all(*name).iter().any(|value| {
            let value = value.to_str().unwrap_or_default().to_ascii_lowercase();
            value.contains("prefetch") || value.contains("prerender") || value.contains("preview")
        })
    })
}

impl Shown {
    /// Reads what a request shows.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let values: Vec<_> = NAMES.iter().flat_map(|name| headers.get_all(name)).collect();
        let Some(value) = values.first() else { return Self::Nothing };
        if values.iter().any(|value| value.len() > MAX_BYTES) {
            return Self::TooLarge;
        }
        if values.len() > 1 {
            return Self::Malformed("More than one payment header");
        }
        let decoded = value.to_str().ok().map(PaymentPayload::decode_header);
        match decoded {
            Some(Ok(Ok(payload))) => Self::Payment(Box::new(payload)),
            Some(Ok(Err(refused))) => Self::Refused(refused.into()),
            Some(Err(HeaderError::TooLong)) => Self::TooLarge,
            Some(Err(HeaderError::Malformed)) | None => Self::Malformed("Malformed x-payment header"),
        }
    }
}
