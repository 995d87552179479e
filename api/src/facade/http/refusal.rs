//! The error of a request, with the header `Allow` where it needs one.

use http::HeaderValue;
use proto::{ApiError, Reason};
use warp::reply::Response;

use super::error;

/// An error and the methods for `Allow`.
pub(crate) struct Refusal {
    pub(crate) error: ApiError,
    pub(crate) allow: Option<&'static str>,
}

impl Refusal {
    pub(crate) fn method(allow: &'static str) -> Self {
        Self { error: ApiError::new(Reason::MethodNotAllowed), allow: Some(allow) }
    }

    pub(crate) fn into_response(self, request_id: &str) -> Response {
        let mut response = error::response(&self.error, request_id);
        if let Some(allow) = self.allow {
            response.headers_mut().insert(http::header::ALLOW, HeaderValue::from_static(allow));
        }
        response
    }
}

impl<E: Into<ApiError>> From<E> for Refusal {
    fn from(error: E) -> Self {
        Self { error: error.into(), allow: None }
    }
}
