//! Error responses: one JSON body for all of them.

use engine::mutant;
use http::{HeaderValue, StatusCode, header};
use proto::{ApiError, Reason};
use serde::Serialize;
use tracing::error;
use warp::reply::Response;

use crate::facade::http::response;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ErrorBody<'a> {
    status_code: u16,
    status_message: &'a str,
    code: &'static str,
    reason: &'static str,
    request_id: &'a str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    details: Vec<Detail<'a>>,
    /// The cursor to continue with after `cursor_of_another_epoch`.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<&'a str>,
}

#[derive(Serialize)]
struct Detail<'a> {
    field: &'a str,
    message: &'a str,
}

/// Serializes the body of an error.
pub(crate) fn body(error: &ApiError, request_id: &str) -> Vec<u8> {
    let details = error.fields.iter().map(|field| Detail { field: &field.field, message: &field.message }).collect();
    let body = ErrorBody {
        status_code: error.http(),
        status_message: &error.message,
        code: error.rest_code().as_str(),
        reason: error.row().name,
        request_id,
        details,
        next_cursor: error.next_cursor.as_deref(),
    };
    response::to_json(&body)
}

/// Returns the response of an error with its status, body and headers.
pub(crate) fn response(error: &ApiError, request_id: &str) -> Response {
    if error.http() == 500 {
        error!(request.id = request_id, "request {request_id} failed: {error}");
    }
    let mut response = response::bytes(status(error), body(error, request_id));
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if error.http() == 401 {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    if matches!(error.http(), 408 | 413 | 431) {
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    with_retry(error, response)
}

/// Adds `Retry-After` where the error has it. Error pages have it, too.
pub(crate) fn with_retry(error: &ApiError, mut response: Response) -> Response {
    if let Some(seconds) = error.retry_after_seconds.filter(|_| !mutant!("facade-no-retry-after")) {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// Returns the HTTP status of an error.
pub(crate) fn status(error: &ApiError) -> StatusCode {
    if mutant!("facade-bad-json-is-500") && error.reason == Reason::MalformedJson {
        return StatusCode::INTERNAL_SERVER_ERROR;
    }
    StatusCode::from_u16(error.http()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}
