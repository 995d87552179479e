//! Files that are made once and cached: the static files of the pages, the OpenAPI document and the reference page.

use std::sync::OnceLock;

use bytes::Bytes;
use flate2::Compression;
use http::{HeaderValue, StatusCode, header};
use sha2::{Digest, Sha256};
use warp::reply::Response;

use super::{
    call::Call,
    compression::{accepts_gzip, encodes, gzip, send_as_is, varies},
};

/// The cached documents.
#[derive(Debug, Default)]
pub(crate) struct CachedDocuments {
    pub(crate) openapi: OnceLock<File>,
    pub(crate) docs: OnceLock<File>,
    /// The reference page with the banner of a test network.
    pub(crate) test_docs: OnceLock<File>,
}

/// Bytes with their compressed form and their entity tag.
#[derive(Debug)]
pub(crate) struct File {
    bytes: Bytes,
    /// Compressed with the best level, because that happens once.
    gzip: Bytes,
    etag: HeaderValue,
    /// The tag of the compressed form. It is weak, because it stands for the same file in other bytes.
    gzip_etag: HeaderValue,
}

impl File {
    pub(crate) fn of(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        let etag = format!("\"{}\"", hex::encode(&Sha256::digest(&bytes)[..16]));
        let header = |text: &str| HeaderValue::from_str(text).expect("hex digits are valid in a header");
        let (strong, weak) = (header(&etag), header(&format!("W/{etag}")));
        let gzip = gzip(&bytes, Compression::best()).into();
        Self { bytes, gzip, etag: strong, gzip_etag: weak }
    }

    /// Returns the file in an encoding that the client accepts, or 304 if the client has it.
    pub(crate) fn response(&self, call: &Call, media_type: &'static str) -> Response {
        let is_known = call.headers().get_all(header::IF_NONE_MATCH).iter().any(|tags| {
            let tags = tags.to_str().unwrap_or_default().split(',').map(|tag| tag.trim().trim_start_matches("W/"));
            tags.into_iter().any(|tag| tag == "*" || tag.as_bytes() == self.etag.as_bytes())
        });
        let is_gzip = self.gzip.len() < self.bytes.len() && accepts_gzip(call.headers());
        let (bytes, etag) = if is_gzip { (&self.gzip, &self.gzip_etag) } else { (&self.bytes, &self.etag) };
        let mut response = if is_known { Response::default() } else { Response::new(bytes.clone().into()) };
        send_as_is(&mut response);
        let headers = response.headers_mut();
        headers.insert(header::ETAG, etag.clone());
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=300"));
        varies(headers);
        if is_known {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            return response;
        }
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
        if is_gzip {
            encodes(headers);
        }
        response
    }
}
