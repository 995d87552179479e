//! Descriptions of the interface that are written once and sent to everybody.

use std::sync::OnceLock;

use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
use sha2::{Digest, Sha256};
use warp::reply::Response;

use super::call::Call;

/// What is written once and sent to everybody.
#[derive(Debug, Default)]
pub(crate) struct Described {
    pub(crate) document: OnceLock<File>,
    pub(crate) docs: OnceLock<File>,
    /// The same page with the banner of a test network.
    pub(crate) test_docs: OnceLock<File>,
}

/// Bytes, and the entity tag that changes with them.
#[derive(Debug)]
pub(crate) struct File {
    bytes: Bytes,
    etag: HeaderValue,
}

impl File {
    pub(crate) fn of(bytes: Vec<u8>) -> Self {
        let etag = format!("\"{}\"", hex::encode(&Sha256::digest(&bytes)[..16]));
        let etag = HeaderValue::from_str(&etag).expect("hex digits can stand in a header");
        Self { bytes: bytes.into(), etag }
    }

    /// Answers with the file, or with 304 to who has it.
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
