//! The payment header of a request.

use engine::x402::{HeaderError, PaymentPayload};
use http::{HeaderMap, HeaderName};

use crate::facade::x402::verdict::Denial;

/// The names of the header in versions 1 and 2; each may contain either version.
const NAMES: [HeaderName; 2] = [HeaderName::from_static("x-payment"), HeaderName::from_static("payment-signature")];
/// Maximum bytes of its value.
pub(crate) const MAX_BYTES: usize = 16 * 1024;

/// The content of the payment header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Shown {
    /// There is no payment header.
    Nothing,
    /// It is longer than `MAX_BYTES`.
    TooLarge,
    /// It is not valid; the text describes why.
    Malformed(&'static str),
    /// Valid JSON that is not a payment.
    Refused(Denial),
    /// A payment.
    Payment(Box<PaymentPayload>),
}

/// Whether a request has a payment header, valid or not. Its client is a program, whatever it accepts.
pub(crate) fn is_shown(headers: &HeaderMap) -> bool {
    NAMES.iter().any(|name| headers.contains_key(name))
}

/// Whether a browser prefetches the page.
pub(crate) fn is_prefetch(headers: &HeaderMap) -> bool {
    ["sec-purpose", "purpose", "x-moz"].iter().any(|name| {
        headers.get_all(*name).iter().any(|value| {
            let value = value.to_str().unwrap_or_default().to_ascii_lowercase();
            value.contains("prefetch") || value.contains("prerender") || value.contains("preview")
        })
    })
}

impl Shown {
    /// Reads the header of a request.
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
