//! The responses of the gate about payments: requirements of both versions, refusals, receipts, and the list of its
//! routes.

use engine::x402::{NETWORK, Reason, SCHEME, encode_header};
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use reqwest::Url;
use serde_json::{Value, json};

use super::{
    body::{Body, full},
    routes::{Price, Route, Routes},
};

const REQUIREMENTS_V1: HeaderName = HeaderName::from_static("x-payment");
const REQUIREMENTS_V2: HeaderName = HeaderName::from_static("payment-required");
/// The receipt's headers of both versions.
pub(super) const RECEIPTS: [HeaderName; 2] =
    [HeaderName::from_static("payment-response"), HeaderName::from_static("x-payment-response")];
/// Seconds after which a client should retry while the outcome is pending.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("3");
const EXPOSED: HeaderValue =
    HeaderValue::from_static("x-payment, x-payment-response, PAYMENT-REQUIRED, PAYMENT-RESPONSE, retry-after");

/// Why a payment is not accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Denial {
    pub(super) reason: Reason,
    pub(super) message: String,
    pub(super) payer: Option<String>,
    pub(super) tx_id: Option<String>,
}

/// A settled payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Settled {
    pub(super) tx_id: String,
    pub(super) payer: String,
}

fn accept_v2(price: &Price) -> Value {
    json!({
        "scheme": SCHEME, "network": NETWORK, "amount": price.amount.units.to_string(),
        "asset": price.amount.currency.code(), "payTo": price.pay_to.as_str(),
        "maxTimeoutSeconds": price.timeout_seconds, "extra": {},
    })
}

fn required_v2(price: &Price, url: &str, error: &str) -> Value {
    json!({
        "x402Version": 2, "error": error,
        "resource": { "url": url, "description": price.description, "mimeType": price.mime_type },
        "accepts": [accept_v2(price)],
    })
}

fn required_v1(price: &Price, url: &str, error: &str) -> Value {
    json!({
        "x402Version": 1, "error": error,
        "accepts": [{
            "scheme": SCHEME, "network": NETWORK, "maxAmountRequired": price.amount.to_string(), "resource": url,
            "description": price.description, "mimeType": price.mime_type, "payTo": price.pay_to.as_str(),
            "asset": price.amount.currency.code(), "maxTimeoutSeconds": price.timeout_seconds, "extra": {},
        }],
    })
}

fn encoded(json: &Value) -> HeaderValue {
    HeaderValue::from_str(&encode_header(&json.to_string())).expect("base64 is a header value")
}

/// Returns a response of JSON that no cache may keep.
pub(super) fn json_response(status: StatusCode, json: &Value) -> Response<Body> {
    let mut response = Response::new(full(json.to_string()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    response
}

/// Returns a refusal without a price.
pub(super) fn refusal(status: StatusCode, reason: &str, message: &str) -> Response<Body> {
    json_response(status, &json!({ "error": reason, "reason": reason, "statusMessage": message }))
}

/// Returns a 402 response with the requirements; with a denial, it names the reason why the submitted payment was refused.
pub(super) fn payment_required(price: &Price, url: &str, denial: Option<&Denial>) -> Response<Body> {
    let reason = denial.map_or("payment_required", |denial| denial.reason.as_str());
    let first = required_v1(price, url, reason);
    let mut body = first.clone();
    if let Some(denial) = denial {
        body["success"] = false.into();
        body["errorReason"] = reason.into();
        body["errorMessage"] = denial.message.as_str().into();
    }
    let mut response = json_response(StatusCode::PAYMENT_REQUIRED, &body);
    let headers = response.headers_mut();
    headers.insert(REQUIREMENTS_V1, encoded(&first));
    headers.insert(REQUIREMENTS_V2, encoded(&required_v2(price, url, reason)));
    if let Some(denial) = denial {
        insert_receipt(headers, &denied(denial));
    }
    response
}

/// Refuses a payment without a new price: its outcome is pending, or it was used.
pub(super) fn payment_refused(status: StatusCode, denial: &Denial) -> Response<Body> {
    let reason = denial.reason.as_str();
    let body = json!({
        "success": false, "error": reason, "reason": reason, "statusMessage": denial.message, "txId": denial.tx_id,
    });
    let mut response = json_response(status, &body);
    insert_receipt(response.headers_mut(), &denied(denial));
    if denial.reason == Reason::SettlementPending || status == StatusCode::CONFLICT || status.is_server_error() {
        response.headers_mut().insert(header::RETRY_AFTER, RETRY_AFTER);
    }
    response
}

fn denied(denial: &Denial) -> Value {
    json!({
        "success": false, "errorReason": denial.reason.as_str(), "errorMessage": denial.message,
        "transaction": denial.tx_id.as_deref().unwrap_or_default(), "network": NETWORK, "payer": denial.payer,
    })
}

/// Adds the outcome of a settled payment, with the extensions of the settlement response.
pub(super) fn insert_settled(headers: &mut http::HeaderMap, settled: &Settled, extensions: Option<Value>) {
    let mut receipt = json!({
        "success": true, "transaction": settled.tx_id, "network": NETWORK, "payer": settled.payer, "txId": settled.tx_id,
    });
    if let Some(extensions) = extensions {
        receipt["extensions"] = extensions;
    }
    insert_receipt(headers, &receipt);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store, private"));
}

fn insert_receipt(headers: &mut http::HeaderMap, receipt: &Value) {
    for name in RECEIPTS {
        headers.insert(name, encoded(receipt));
    }
}

/// Returns the document of `/.well-known/x402`: every priced route with its price.
pub(super) fn discovery(routes: &Routes, base: &Url) -> Value {
    let item = |(route, price): (&Route, &Price)| {
        let url = resource(base, &route.path);
        json!({
            "resource": url, "type": "http", "method": route.method.as_ref().map(http::Method::as_str),
            "x402Version": 2, "description": price.description, "mimeType": price.mime_type,
            "accepts": [accept_v2(price)],
        })
    };
    let items: Vec<Value> = routes.priced().map(item).collect();
    let resources: Vec<&Value> = items.iter().map(|item| &item["resource"]).collect();
    json!({ "version": 1, "resources": resources, "items": items })
}

/// Returns the public URL of a path.
pub(super) fn resource(base: &Url, path: &str) -> String {
    format!("{}{path}", base.as_str().trim_end_matches('/'))
}
