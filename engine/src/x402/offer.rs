//! Payment requirements of 402 responses, in both versions.

use serde::Serialize;
use serde_json::value::RawValue;

use super::{NETWORK, OFFER_RECEIPT, SCHEME, offer_extension};
use crate::{account::AccountName, ids::PaymentId, ledger::memo_of, money::Money, time::Timestamp};

/// Maximum `maxTimeoutSeconds` of requirements.
const MAX_TIMEOUT_SECONDS: u64 = 300;
/// Maximum bytes of the description, so that headers fit a proxy's buffer of 4 kB.
const MAX_DESCRIPTION_BYTES: usize = 256;

/// The extensions of every offer of version 2: `payment-identifier` with the schema of its specification, which identifies
/// retries of a payment.
const EXTENSIONS: &str = concat!(
    r#"{"payment-identifier":{"info":{"required":false},"schema":{"#,
    r#""$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"#,
    r#""required":{"type":"boolean"},"#,
    r#""id":{"type":"string","minLength":16,"maxLength":128,"pattern":"^[a-zA-Z0-9_-]+$"}},"#,
    r#""required":["required"]}}}"#,
);

/// A payment session as offered to an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// The session.
    pub session: PaymentId,
    /// The total amount.
    pub amount: Money,
    /// The payee.
    pub pay_to: AccountName,
    /// The fee transfer, if the fee is split.
    pub fee: Option<OfferFee>,
    /// The path of the checkout URL: `/for/{slug}`.
    pub path: String,
    /// The base URL of the service, without a trailing slash.
    pub base_url: String,
    /// The description.
    pub description: String,
    /// When the session expires.
    pub expires_at: Timestamp,
    /// The signed offer (JWS); `None` if offers are not signed.
    pub signed: Option<String>,
}

/// The fee transfer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferFee {
    /// The fee account.
    pub account: AccountName,
    /// The part of the amount, smallest units.
    pub units: u64,
}

/// Returns the body (and `x-payment` header) of version 1.
#[must_use]
pub fn body_v1(offer: &Offer, error: &str, now: Timestamp) -> String {
    let accept = AcceptV1 {
        x402_version: 1,
        scheme: SCHEME,
        network: NETWORK,
        max_amount_required: offer.amount.to_string(),
        resource: &offer.path,
        description: offer.short_description(),
        mime_type: "application/json",
        pay_to: offer.pay_to.as_str(),
        valid_before: offer.expires_at.to_string(),
        asset: offer.amount.currency.code(),
        max_timeout_seconds: offer.timeout_seconds(now),
        extra: offer.extra(),
    };
    json(&BodyV1 { x402_version: 1, error, accepts: [accept] })
}

/// Returns the `PAYMENT-REQUIRED` header of version 2.
#[must_use]
pub fn requirements_v2(offer: &Offer, error: &str, now: Timestamp) -> String {
    let accept = AcceptV2 {
        scheme: SCHEME,
        network: NETWORK,
        amount: offer.amount.units.to_string(),
        asset: offer.amount.currency.code(),
        pay_to: offer.pay_to.as_str(),
        max_timeout_seconds: offer.timeout_seconds(now),
        extra: offer.extra(),
    };
    let resource = Resource {
        url: format!("{}{}", offer.base_url, offer.path),
        description: offer.short_description(),
        mime_type: "application/json",
    };
    let extensions = RawValue::from_string(offer.extensions()).expect("our own text is JSON");
    json(&BodyV2 { x402_version: 2, error, resource, accepts: [accept], extensions })
}

impl Offer {
    fn timeout_seconds(&self, now: Timestamp) -> u64 {
        self.expires_at.since(now).as_secs().clamp(1, MAX_TIMEOUT_SECONDS)
    }

    fn extensions(&self) -> String {
        match &self.signed {
            Some(jws) => {
                let others = EXTENSIONS.strip_suffix('}').expect("an object");
                format!(r#"{others},"{OFFER_RECEIPT}":{}}}"#, offer_extension(jws))
            }
            None => EXTENSIONS.to_owned(),
        }
    }

    fn short_description(&self) -> &str {
        let mut end = self.description.len().min(MAX_DESCRIPTION_BYTES);
        while !self.description.is_char_boundary(end) {
            end -= 1;
        }
        &self.description[..end]
    }

    /// Must not change during the lifetime of the session, because servers compare it as a whole.
    fn extra(&self) -> Extra {
        let fee = self.fee.as_ref();
        let part = |units| Money::new(units, self.amount.currency).to_string();
        Extra {
            session_id: self.session.to_string(),
            memo: memo_of(self.session),
            fee_account: fee.map(|fee| fee.account.to_string()),
            fee_amount: fee.map(|fee| part(fee.units)),
            net_amount: fee.map(|fee| part(self.amount.units - fee.units)),
            fee_memo: fee.map(|_| format!("fee-{}", self.session)),
        }
    }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("texts and numbers always serialize")
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BodyV1<'a> {
    x402_version: u8,
    error: &'a str,
    accepts: [AcceptV1<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AcceptV1<'a> {
    x402_version: u8,
    scheme: &'a str,
    network: &'a str,
    max_amount_required: String,
    resource: &'a str,
    description: &'a str,
    mime_type: &'a str,
    pay_to: &'a str,
    valid_before: String,
    asset: &'a str,
    max_timeout_seconds: u64,
    extra: Extra,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BodyV2<'a> {
    x402_version: u8,
    error: &'a str,
    resource: Resource<'a>,
    accepts: [AcceptV2<'a>; 1],
    extensions: Box<RawValue>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Resource<'a> {
    url: String,
    description: &'a str,
    mime_type: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AcceptV2<'a> {
    scheme: &'a str,
    network: &'a str,
    amount: String,
    asset: &'a str,
    pay_to: &'a str,
    max_timeout_seconds: u64,
    extra: Extra,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Extra {
    session_id: String,
    memo: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fee_account: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fee_amount: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    net_amount: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fee_memo: Option<String>,
}
