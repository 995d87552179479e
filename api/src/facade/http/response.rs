//! Constructors of responses, and the headers that every response has.

use http::{HeaderName, HeaderValue, StatusCode, header};
use serde::Serialize;
use warp::reply::Response;

/// Returns a response with a value as JSON.
pub(crate) fn json(status: StatusCode, value: &impl Serialize) -> Response {
    bytes(status, to_json(value))
}

/// Serializes a value as JSON.
pub(crate) fn to_json(value: &impl Serialize) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    serde_json::to_writer(&mut out, value).expect("response records have string keys and plain values");
    out
}

/// Returns a response with serialized JSON.
pub(crate) fn bytes(status: StatusCode, body: Vec<u8>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Marks a streaming response, so that neither caches nor reverse proxies hold parts of it back.
pub(crate) fn streams(response: &mut Response) {
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_ACCEL_BUFFERING, HeaderValue::from_static("no"));
}

/// Turns off response buffering in nginx.
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Returns the response to OPTIONS: the methods of the route, and the CORS headers for any origin. API keys are not among
/// the allowed headers.
pub(crate) fn options(allow: &'static str) -> Response {
    let mut response = Response::new(Vec::new().into());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(header::ALLOW, HeaderValue::from_static(allow));
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(allow));
    headers.insert(
        header::ACCESS_CONTROL_ALLOW_HEADERS,
        HeaderValue::from_static("content-type, idempotency-key, x-request-id, x-payment, payment-signature"),
    );
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    response
}

/// Allows the web pages of an origin that the operator trusts to send API keys.
pub(crate) fn allow_keys(response: &mut Response, origin: HeaderValue) {
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.append(header::VARY, HeaderValue::from_static("Origin"));
    headers.append(header::ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("authorization, x-api-key"));
}

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Adds the headers that every response has.
pub(crate) fn finish(response: &mut Response, request_id: HeaderValue, is_api: bool) {
    let headers = response.headers_mut();
    headers.reserve(8);
    headers.insert(X_REQUEST_ID, request_id);
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if is_api {
        // The API uses no cookies, so any origin may read what its own key may read.
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
        headers.insert(
            header::ACCESS_CONTROL_EXPOSE_HEADERS,
            HeaderValue::from_static(
                "x-request-id, location, retry-after, ratelimit, ratelimit-policy, idempotent-replayed",
            ),
        );
        headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    }
}
