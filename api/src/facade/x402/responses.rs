//! Responses to programs: the fields of x402 beside those of the error body, and the headers of both versions.

use engine::{
    account::AccountName,
    x402::{
        NETWORK, OFFER_RECEIPT, Offer, OfferFee, Reason, body_v1, encode_header, receipt_extension, requirements_v2,
    },
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use proto::{ApiError, status::RestCode, v1};
use serde::Serialize;
use serde_json::{Value, json};
use warp::reply::Response;

use crate::facade::{
    http::{error, response},
    record,
    x402::verdict::Denial,
};

/// Seconds after which a client should retry while the outcome is open.
const RETRY_AFTER_SECONDS: u16 = 3;
/// Response headers that browsers of any origin may read.
const EXPOSED: &str = "x-payment, x-payment-response, PAYMENT-REQUIRED, PAYMENT-RESPONSE, retry-after, x-request-id";
/// Request headers that browsers of any origin may send.
const ALLOWED: &str = "PAYMENT-SIGNATURE, X-PAYMENT, accept, content-type, x-request-id";

const REQUIREMENTS_V1: HeaderName = HeaderName::from_static("x-payment");
const REQUIREMENTS_V2: HeaderName = HeaderName::from_static("payment-required");
const RECEIPTS: [HeaderName; 2] =
    [HeaderName::from_static("x-payment-response"), HeaderName::from_static("payment-response")];

/// Lets browsers of any origin read the response, because agents also run in web pages.
pub(crate) fn cors(headers: &mut HeaderMap) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED));
}

/// Lets browsers of any origin send a payment to a checkout URL.
pub(crate) fn preflight(headers: &mut HeaderMap) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(ALLOWED));
}

/// The fields of the error body.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Standard<'a> {
    status_code: u16,
    status_message: &'a str,
    code: &'static str,
    reason: &'a str,
    request_id: &'a str,
}

/// Returns a refusal: the fields of x402, then those of the error body.
pub(crate) fn refusal(status: StatusCode, reason: &str, message: &str, request_id: &str, own: Vec<u8>) -> Response {
    let standard = Standard {
        status_code: status.as_u16(),
        status_message: message,
        code: RestCode::of(status.as_u16()).as_str(),
        reason,
        request_id,
    };
    let mut response = response::bytes(status, join(own, &response::to_json(&standard)));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Returns the response of an error, with the fields of x402 first.
pub(crate) fn failure(failed: &ApiError, request_id: &str, own: &impl Serialize) -> Response {
    failure_with(failed, request_id, response::to_json(own))
}

/// The same with serialized fields.
pub(crate) fn failure_with(failed: &ApiError, request_id: &str, own: Vec<u8>) -> Response {
    let mut response = error::response(failed, request_id);
    *response.body_mut() = join(own, &error::body(failed, request_id)).into();
    response
}

/// Joins two JSON objects without common fields.
fn join(mut first: Vec<u8>, second: &[u8]) -> Vec<u8> {
    if first == b"{}" {
        return second.to_vec();
    }
    first.pop();
    first.push(b',');
    first.extend_from_slice(&second[1..]);
    first
}

/// The outcome of a payment header in the response header of both versions.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Receipt<'a> {
    success: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_message: Option<&'a str>,
    transaction: &'a str,
    network: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    payer: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tx_id: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    replayed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    extensions: Option<Value>,
}

/// Returns the `extensions` of a settlement response: the signed receipt, if there is one.
pub(crate) fn receipt_extensions(settled: &v1::X402Settled) -> Option<Value> {
    settled.receipt.as_deref().map(|jws| json!({ (OFFER_RECEIPT): receipt_extension(jws) }))
}

fn insert_receipt(headers: &mut HeaderMap, receipt: &Receipt<'_>) {
    let value = base64(&String::from_utf8_lossy(&response::to_json(receipt)));
    for name in RECEIPTS {
        headers.insert(name, value.clone());
    }
}

/// Adds the reason of a refusal to the headers.
pub(crate) fn insert_denial(headers: &mut HeaderMap, denial: &Denial) {
    insert_receipt(
        headers,
        &Receipt {
            success: false,
            error_reason: Some(denial.reason.as_str()),
            error_message: Some(&denial.message),
            transaction: denial.tx_id.as_deref().unwrap_or_default(),
            network: NETWORK,
            payer: denial.payer.as_deref(),
            tx_id: None,
            replayed: false,
            extensions: None,
        },
    );
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Paid<'a> {
    success: bool,
    tx_id: &'a str,
    payer: &'a str,
    session_id: &'a str,
    status: &'static str,
    /// Whether an earlier request contained this payment.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    replayed: bool,
}

/// Returns the response of a settled payment.
pub(crate) fn paid(payment: &v1::Payment, settled: &v1::X402Settled) -> Response {
    let (tx_id, payer) = (settled.tx_id.as_str(), settled.payer.as_str());
    let replayed = settled.is_replay;
    let body = Paid { success: true, tx_id, payer, session_id: &payment.id, status: "completed", replayed };
    let mut response = response::json(StatusCode::OK, &body);
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store, private"));
    insert_receipt(
        headers,
        &Receipt {
            success: true,
            error_reason: None,
            error_message: None,
            transaction: tx_id,
            network: NETWORK,
            payer: Some(payer),
            tx_id: Some(tx_id),
            replayed,
            extensions: receipt_extensions(settled),
        },
    );
    response
}

/// The fields of a 402 beside its requirements after a refusal.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Refused<'a> {
    success: bool,
    error_reason: &'a str,
    error_message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    payer: Option<&'a str>,
    session_id: &'a str,
}

/// Returns 402 with the requirements in both versions, and the reason of a refusal.
pub(crate) fn required(
    offer: &Offer,
    read_at: Option<proto::time::Timestamp>,
    denied: Option<&Denial>,
    request_id: &str,
) -> Response {
    let now = record::instant(read_at);
    let (reason, message) = match denied {
        Some(denial) => (denial.reason.as_str(), denial.message.as_str()),
        None => {
            let row = proto::status::row_of(proto::Reason::PaymentRequired);
            (row.name, row.message)
        }
    };
    let requirements = body_v1(offer, reason, now);
    let header = base64(&requirements);
    let mut own = requirements.into_bytes();
    if let Some(denial) = denied {
        let session_id = offer.session.to_string();
        let refused = Refused {
            success: false,
            error_reason: reason,
            error_message: message,
            payer: denial.payer.as_deref(),
            session_id: &session_id,
        };
        own = join(own, &response::to_json(&refused));
    }
    let mut response = refusal(StatusCode::PAYMENT_REQUIRED, reason, message, request_id, own);
    let headers = response.headers_mut();
    headers.insert(REQUIREMENTS_V1, header);
    headers.insert(REQUIREMENTS_V2, base64(&requirements_v2(offer, reason, now)));
    if let Some(denial) = denied {
        insert_denial(headers, denial);
    }
    response
}

/// The fields of a response without requirements, because the payment cannot be paid now.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Closed<'a> {
    pub(crate) success: bool,
    pub(crate) error: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) session_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tx_id: Option<&'a str>,
}

/// Returns the response while the outcome is open. It has no requirements: with fresh ones a client would sign again
/// and pay twice.
pub(crate) fn pending(payment: &v1::Payment, denial: &Denial, request_id: &str) -> Response {
    let word = Reason::SettlementPending.as_str();
    let own = Closed {
        success: false,
        error: word,
        session_id: Some(&payment.id),
        status: Some("processing"),
        tx_id: denial.tx_id.as_deref(),
    };
    let own = response::to_json(&own);
    let mut response = refusal(StatusCode::PAYMENT_REQUIRED, word, &denial.message, request_id, own);
    insert_denial(response.headers_mut(), denial);
    retry_later(&mut response);
    response
}

/// Adds `Retry-After` to a response that may change soon.
pub(crate) fn retry_later(response: &mut Response) {
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(RETRY_AFTER_SECONDS));
}

/// Returns the offer of a payment at `path`, with its signature if there is one.
///
/// # Errors
/// `internal` if the engine's record has no id, no account or no known currency.
pub(crate) fn offer(
    payment: &v1::Payment,
    base_url: &str,
    path: String,
    signed: Option<String>,
) -> Result<Offer, ApiError> {
    let broken = || ApiError::new(proto::Reason::Internal);
    let account = |name: &String| AccountName::parse(name).map_err(|_| broken());
    let fee = payment.fee_account.as_ref().map(account).transpose()?;
    Ok(Offer {
        session: payment.id.parse().map_err(|_| broken())?,
        amount: record::price(payment)?,
        pay_to: account(&payment.pay_to)?,
        fee: fee.map(|account| OfferFee { account, units: payment.fee_units }),
        path,
        base_url: base_url.to_owned(),
        description: payment.description.clone(),
        expires_at: record::instant(payment.expires_at),
        signed,
    })
}

fn base64(json: &str) -> HeaderValue {
    HeaderValue::from_str(&encode_header(json)).expect("base64 may stand in a header")
}
