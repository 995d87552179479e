//! Documents that are rendered once and cached: the OpenAPI document and the reference page.

use std::sync::OnceLock;

use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
use sha2::{Digest, Sha256};
use warp::reply::Response;

use super::call::Call;

/// The cached documents.
#[derive(Debug, Default)]
pub(crate) struct CachedDocuments {
    pub(crate) openapi: OnceLock<File>,
    pub(crate) docs: OnceLock<File>,
    /// The reference page with the banner of a test network.
    pub(crate) test_docs: OnceLock<File>,
}

/// Bytes with their entity tag.
#[derive(Debug)]
pub(crate) struct File {
    bytes: Bytes,
    etag: HeaderValue,
}

impl File {
    pub(crate) fn of(bytes: Vec<u8>) -> Self {
        let etag = format!("\"{}\"", hex::encode(&Sha256::digest(&bytes)[..16]));
        let etag = HeaderValue::from_str(&etag).expect("hex digits are valid in a header");
        Self { bytes: bytes.into(), etag }
    }

    /// Returns the file, or 304 if the client has it.
    pub(crate) fn response(&self, call: &Call, media_type: &'static str) -> Response {
        let is_known = call.headers().get_all(header::IF_NONE_MATCH).iter().any(|tags| {
            let tags = tags.to_str().unwrap_or_default().split(',').map(|tag| tag.trim().trim_start_matches("W/"));
            tags.into_iter().any(|tag| tag == "*" || tag.as_bytes() == self.etag.as_bytes())
        });
        let mut response = if is_known { Response::default() } else { Response::new(self.bytes.clone().into()) };
        let headers = response.headers_mut();
        headers.insert(header::ETAG, self.etag.clone());
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=300"));
        if is_known {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
        } else {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
        }
        response
    }
}
